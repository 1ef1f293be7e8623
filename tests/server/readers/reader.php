<?php
// How PHP reads request targets: a line of hex in, a line of `name=hex` out for each.
while (($line = fgets(STDIN)) !== false) {
  $target = hex2bin(trim($line));
  // As frameworks take it from REQUEST_URI: up to the query, decoded by the router.
  $uri = strpos($target, '?') === false ? $target : substr($target, 0, strpos($target, '?'));
  $found = ['uri' => $uri, 'uri+rawurldecode' => rawurldecode($uri), 'uri+urldecode' => urldecode($uri)];
  $found['uri+rawurldecode+trim'] = '/' . trim(rawurldecode($uri), '/');
  $path = parse_url($target, PHP_URL_PATH);  // false: it refuses
  if (is_string($path)) {
    $found += ['parse_url' => $path, 'parse_url+rawurldecode' => rawurldecode($path)];
    $found['parse_url+rawurldecode+trim'] = '/' . trim(rawurldecode($path), '/');
  }
  // Scripts that look up a file below their folder.
  $parts = [];
  foreach (explode('/', rawurldecode($uri)) as $part) {
    if ($part === '' || $part === '.') continue;
    if ($part === '..') array_pop($parts);
    else $parts[] = $part;
  }
  $found['realpath'] = '/' . implode('/', $parts);
  $texts = [];
  foreach ($found as $name => $text) $texts[] = $name . '=' . bin2hex($text);
  echo implode(' ', $texts), "\n";
}
