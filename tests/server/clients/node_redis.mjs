// node-redis against the RESP port: node node_redis.mjs PORT [PASSWORD], where its module can be found
//
// It greets with HELLO 3 and refuses to work without. Prints one line a fact, which redis_clients.sh compares.
import { createRequire } from 'node:module';
const { createClient } = createRequire(process.cwd() + '/')('redis');

const [port, password] = process.argv.slice(2);
for (const RESP of [2, 3]) {
  const client = createClient({ socket: { port: Number(port), host: '127.0.0.1', reconnectStrategy: false }, password, RESP });
  client.on('error', (error) => console.log('error event:', error.message));
  await client.connect();
  const name = `node-redis:${RESP}`;
  console.log('ping:', await client.ping());
  console.log('throttle:', (await client.sendCommand(['CL.THROTTLE', name, '1', '30', '6000'])).join(' '));
  const limit = await client.sendCommand(['WEIR.LIMIT', name + ':limit', '3/day', 'ALGORITHM', 'sliding_log']);
  console.log('limit:', Array.isArray(limit) ? limit.slice(0, 2).join(' ') : `allowed ${limit.allowed}`);
  const many = await Promise.all(
    Array.from({ length: 1000 }, (_, i) => client.sendCommand(['GCRA', `${name}:${i % 500}`, '0', '1', '6000'])));
  console.log('pipeline of 1000:', many.filter((reply) => reply[0] === 0).length, 'allowed');
  const transaction = await client.multi().addCommand(['GCRA', name + ':multi', '0', '1', '6000'])
    .addCommand(['GCRA', name + ':multi', '0', '1', '6000']).exec();
  console.log('transaction:', transaction.map((reply) => reply[0]).join(' '));
  console.log('error:', await client.sendCommand(['CL.THROTTLE', name]).catch((error) => error.message));
  client.destroy();
}
