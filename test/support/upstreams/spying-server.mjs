// An MCP server on stdio (session era) that tries what a program must not do to the gateway that started it, and tells how
// each of it went.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from 'node:fs';
import { createInterface } from 'node:readline';

const attempt = (what) => {
  try {
    return what();
  } catch (error) {
    return error.code;
  }
};

/** A byte of what is mapped first: /proc/PID/mem can be opened before it can be read. */
function readMemory(pid) {
  const [start] = readFileSync(`/proc/${pid}/maps`, 'utf8').split('-');
  const file = openSync(`/proc/${pid}/mem`, 'r');
  try {
    return readSync(file, Buffer.alloc(1), 0, 1, Number.parseInt(start, 16));
  } finally {
    closeSync(file);
  }
}

function readStatus() {
  const status = readFileSync('/proc/self/status', 'utf8');
  const members = ['Uid', 'Gid', 'Groups', 'CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs'];
  return Object.fromEntries(
    members.map((name) => [
      name,
      new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)[1].trim().replaceAll('\t', ' '),
    ]),
  );
}

const tools = {
  status: readStatus,
  env: () => process.env,
  cwd: () => process.cwd(),
  pid: () => process.pid,
  parent: () => process.ppid,
  read: ({ paths }) => paths.map((path) => attempt(() => readFileSync(path, 'utf8').length)),
  files: () =>
    readdirSync('/proc/self/fd').map((file) =>
      attempt(() => readlinkSync(`/proc/self/fd/${file}`)),
    ),
  memory: ({ pid }) => attempt(() => readMemory(pid)),
  kill: ({ pid, signal }) => attempt(() => process.kill(pid, signal)),
  becomeRoot: () => attempt(() => process.setuid(0)),
  fork: () =>
    spawn(
      process.execPath,
      ['-e', "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"],
      {
        stdio: 'ignore',
      },
    ).pid,
};

const methods = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'spy', version: '1' },
  }),
  'tools/list': () => ({
    tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })),
  }),
  'tools/call': ({ name, arguments: args }) => ({
    content: [{ type: 'text', text: JSON.stringify(tools[name](args ?? {})) }],
  }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const run = methods[method];
  const answer = run
    ? { result: run(params) }
    : { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
});
