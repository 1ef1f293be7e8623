// ioredis against the RESP port: node ioredis.mjs PORT [PASSWORD], where its module can be found
//
// It asks INFO whether the server is ready. Prints one line a fact, which redis_clients.sh compares.
import { createRequire } from 'node:module';
const module = createRequire(process.cwd() + '/')('ioredis');
const Redis = module.default ?? module;

const [port, password] = process.argv.slice(2);
const client = new Redis({ port: Number(port), host: '127.0.0.1', password, retryStrategy: () => null });
client.on('error', (error) => console.log('error event:', error.message));
await new Promise((ready) => client.once('ready', ready));
console.log('ping:', await client.ping());
console.log('throttle:', (await client.call('CL.THROTTLE', 'ioredis', 1, 30, 6000)).join(' '));
const pipeline = client.pipeline();
for (let i = 0; i < 1000; i++) pipeline.call('GCRA', `ioredis:${i % 500}`, 0, 1, 6000);
const replies = await pipeline.exec();
console.log('pipeline of 1000:', replies.filter(([error, reply]) => !error && reply[0] === 0).length, 'allowed');
const transaction = await client.multi().call('GCRA', 'ioredis:multi', 0, 1, 6000).call('GCRA', 'ioredis:multi', 0, 1, 6000).exec();
console.log('transaction:', transaction.map(([error, reply]) => error ?? reply[0]).join(' '));
console.log('error:', await client.call('CL.THROTTLE', 'ioredis').catch((error) => error.message));
client.disconnect();
