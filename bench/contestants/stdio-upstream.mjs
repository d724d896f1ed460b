// The same server as a process that speaks on stdin and stdout, for the gateways that know no other.
import { createInterface } from 'node:readline';
import { answer } from './server-answers.mjs';

createInterface({ input: process.stdin }).on('line', (line) => {
  const answered = answer(JSON.parse(line));
  if (answered !== undefined) process.stdout.write(`${answered.body}\n`);
});
