// How Node reads request targets: a line of hex in, a line of `name=hex` out for each.
import path from 'node:path';
import readline from 'node:readline';
import url from 'node:url';

const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
for await (const line of readline.createInterface({ input: process.stdin })) {
  const target = Buffer.from(line.trim(), 'hex').toString('latin1');
  const found = {};
  try {
    const own = new URL(target, 'http://localhost').pathname;
    Object.assign(found, { URL: own, 'URL+decode': decoded(own), 'URL+decode+normalize': path.posix.normalize(decoded(own)) });
  } catch { /* refused */ }
  try {
    const own = url.parse(target).pathname ?? '/';
    Object.assign(found, { parse: own, 'parse+decode+normalize': path.posix.normalize(decoded(own)) });
  } catch { /* refused */ }
  process.stdout.write(Object.entries(found).map(([name, text]) => `${name}=${Buffer.from(text, 'latin1').toString('hex')}`).join(' ') + '\n');
}
