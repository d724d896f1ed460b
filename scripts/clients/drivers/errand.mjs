// node <driver>.mjs <url> list|call|hold: what every driver is asked to do.
import { once } from 'node:events';
import { createLogIn } from './login.mjs';

/** `open` connects, logs in where it is asked to, and resolves to `{ list, call, close }`. */
export async function run(open) {
  const [url, errand] = process.argv.slice(2);
  const client = await open(new URL(url), createLogIn());
  if (errand === 'list') console.log(JSON.stringify(await client.list()));
  else console.log(JSON.stringify(await client.call()));
  if (errand === 'hold') {
    console.log('READY');
    await once(process.stdin, 'data');
    console.log(JSON.stringify(await client.call()));
  }
  await client.close();
  process.exit(0);
}
