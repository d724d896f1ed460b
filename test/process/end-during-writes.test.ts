// §17: a process ends while it writes to DATA_DIR, whatever ends it, and what it answered before is there afterwards.
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { callTool, writeFileIn } from '../support/catalogs/catalog-files.ts';
import {
  type End,
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { authorize, register } from '../support/gateway/process-login.ts';
import { chooseCount, LONG_MS } from '../support/tools/long-run.ts';

/** Its tools end the process in a moment, each in its way. */
const CATALOG = `
import { createLocalCatalog, defineTool } from 'postern/define';

const inputSchema = { type: 'object', additionalProperties: false };
const defineEnd = (name, end) =>
  defineTool({
    name,
    description: 'Ends the process.',
    inputSchema,
    run: () => {
      setTimeout(end, 5);
      return { content: [] };
    },
  });
export default createLocalCatalog({
  tools: [
    defineEnd('throw', () => {
      throw new Error('nobody catches this');
    }),
    defineEnd('exit', () => process.exit(3)),
    defineEnd('print', () => console.log('said')),
  ],
});
`;

afterEach(endPosterns);

async function startWriting(DATA_DIR: string) {
  const folder = await makeFolder();
  const postern = await startPostern({
    DATA_DIR,
    POSTERN_CATALOG: join(folder, await writeFileIn(folder, 'catalog.mjs', CATALOG)),
    AUTH_REQUIRED: 'false',
    OAUTH_AUTHORIZATION_URL: 'https://idp.example/authorize',
    OAUTH_CLIENT_ID: 'gateway',
    RATE_LIMIT_ENABLED: 'false',
  });
  const clients: string[] = [];
  const registering = Array.from({ length: 8 }, async () => {
    for (;;) clients.push(await register(postern.url));
  });
  // Each goes on until the process refuses it.
  const refused = Promise.allSettled(registering);
  await expect.poll(() => clients.length, { interval: 1 }).toBeGreaterThan(8);
  return { postern, clients, refused };
}

const callEnd = (name: string) => async (postern: RunningPostern) =>
  void (await callTool(postern.url, name).catch(() => undefined));

const KILLED: End = { code: null, signal: 'SIGKILL' };

test.each<{
  how: string;
  end: (postern: RunningPostern, share: number) => Promise<void>;
  allowed: readonly End[];
}>([
  {
    how: 'an error that nobody catches',
    end: callEnd('throw'),
    allowed: [{ code: 1, signal: null }],
  },
  {
    // Node.js waits for nothing then: a write that is under way cannot end.
    how: 'process.exit in a tool',
    end: callEnd('exit'),
    allowed: [{ code: 3, signal: null }, KILLED],
  },
  {
    how: 'a tool that prints, after the reader of standard output has gone',
    async end(postern) {
      postern.reading.close();
      await callEnd('print')(postern);
    },
    allowed: [{ code: 0, signal: null }],
  },
  {
    how: 'a second SIGTERM within 15 ms',
    async end(postern, share) {
      postern.kill('SIGTERM');
      await pause(15 * share);
      postern.kill('SIGTERM');
    },
    // The second one finds it in the middle of its exit, or gone.
    allowed: [
      { code: 0, signal: null },
      { code: 143, signal: null },
      { code: null, signal: 'SIGTERM' },
    ],
  },
])(
  '§17 $how ends a process that writes, and nothing that was answered is lost',
  { timeout: LONG_MS },
  async ({ end, allowed }) => {
    const DATA_DIR = await makeFolder();
    const rounds = chooseCount(4, 40);
    const all: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const { postern, clients, refused } = await startWriting(DATA_DIR);
      await end(postern, round / rounds);
      expect(allowed).toContainEqual(await postern.ended);
      await refused;
      all.push(...clients);
    }
    const { postern } = await startWriting(DATA_DIR);
    for (const client of all) expect(await authorize(postern.url, client)).toMatch(/^https:/);
  },
);
