// A child that speaks JSON-RPC, a message a line, over its standard streams.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const LATE_MS = 5000;

export function start(command, args) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map();
  let lastId = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, method, result, error } = JSON.parse(line);
    if (method !== undefined || !waiting.has(id)) return;
    const { resolve, reject } = waiting.get(id);
    if (error === undefined) resolve(result);
    else reject(new Error(JSON.stringify(error)));
  });
  const send = (message) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  return {
    notify: (method, params) => send({ method, params }),
    ask(method, params) {
      lastId += 1;
      const id = lastId;
      send({ id, method, params });
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    /** Lets it finish: a refresh token that it has just got must reach its disk. */
    async close() {
      const exited = once(child, 'exit');
      child.stdin.end();
      const late = setTimeout(() => child.kill(), LATE_MS);
      await exited;
      clearTimeout(late);
    },
  };
}
