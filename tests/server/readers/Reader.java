// How Java reads request targets: a line of hex in, a line of `name=hex` out for each.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

public class Reader {
  static String hex(String text) { return HexFormat.of().formatHex(text.getBytes(StandardCharsets.ISO_8859_1)); }

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; System.out.flush()) {
      String target = new String(HexFormat.of().parseHex(line.strip()), StandardCharsets.ISO_8859_1);
      try {
        URI uri = new URI(target);
        String path = uri.getPath() == null ? "" : uri.getPath();
        URI normal = uri.normalize();
        System.out.println("URI=" + hex(path) + " URI.normalize=" + hex(normal.getPath() == null ? "" : normal.getPath()));
      } catch (Exception refused) {
        System.out.println();
      }
    }
  }
}
