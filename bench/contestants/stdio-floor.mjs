// The least that passes on to a process: each message is parsed and written, between a socket and a pipe. No tokens.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { createJsonListener } from './answer.mjs';

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map();
let lastId = 0;

createInterface({ input: child.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  const { id, res } = waiting.get(message.id) ?? {};
  waiting.delete(message.id);
  const body = JSON.stringify({ ...message, id });
  res?.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'mcp-session-id': 'bare',
  });
  res?.end(body);
});

const listener = createJsonListener((_req, res, message) => {
  const isRequest = message.id !== undefined;
  lastId += 1;
  if (isRequest) waiting.set(lastId, { id: message.id, res });
  child.stdin.write(`${JSON.stringify(isRequest ? { ...message, id: lastId } : message)}\n`);
  if (!isRequest) res.writeHead(202).end();
});
createServer(listener).listen(Number(process.env.PORT), '127.0.0.1');

process.once('SIGTERM', () => process.exit());
