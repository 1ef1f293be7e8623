// How Go reads request targets: a line of hex in, a line of `name=hex` out for each.
package main

import (
  "bufio"
  "encoding/hex"
  "fmt"
  "net/http"
  "net/url"
  "os"
  "path"
  "strings"
)

func main() {
  mux := http.NewServeMux()
  mux.HandleFunc("/api/login", func(http.ResponseWriter, *http.Request) {})
  lines := bufio.NewScanner(os.Stdin)
  out := bufio.NewWriter(os.Stdout)
  for lines.Scan() {
    bytes, _ := hex.DecodeString(strings.TrimSpace(lines.Text()))
    if u, err := url.ParseRequestURI(string(bytes)); err == nil {
      fmt.Fprintf(out, "Path=%x Clean=%x", u.Path, path.Clean(u.Path))
      request := &http.Request{Method: "GET", URL: u, Host: "h", RequestURI: string(bytes)}
      if _, pattern := mux.Handler(request); pattern != "" {
        fmt.Fprintf(out, " ServeMux=%x", pattern)
      }
    }
    fmt.Fprintln(out)
    out.Flush()
  }
}
