// For what a test cannot do to its own process (a full disk, a kill): an embedded store in a process
// of its own. It gets acts as messages, and answers each with its result or why it failed.
import { openEmbeddedStore } from '../../src/store/embedded/open.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { readSession, slideSession } from '../support/stores/session-steps.ts';

const [dataDir = '', start] = process.argv.slice(2);
const TTL = 60;
const clock = manualClock(Number(start));
const { log, lines } = collectLog();
const store = await openEmbeddedStore({ dataDir, sessionKeyPrefix: 'mcp:session:', clock, log });

const create = (sessionId: string) =>
  store.createSession(
    {
      sessionId,
      createdAt: clock.now(),
      lastAccessedAt: clock.now(),
      userId: 'ada',
      protocolVersion: '2025-11-25',
      clientCapabilities: '{}',
    },
    TTL,
  );

const ACTS: Readonly<Record<string, (arg: string) => unknown>> = {
  create,
  /** Answered at once. */
  beginToCreate: (sessionId) => void create(sessionId),
  touch: (id) => slideSession(store, id, 'ada', TTL),
  setLogLevel: (id) => store.setSessionLogLevel(id, { sub: 'ada' }, 'debug'),
  end: (id) => store.endSession(id, { sub: 'ada' }),
  read: (id) => readSession(store, id),
  set: (key) => store.set(key, 'value', TTL),
  ping: () => store.ping(),
  advance: (ms) => clock.advance(Number(ms)),
  log: () => lines,
  close: () => store.close(),
};

process.on('message', async ({ act, arg }: { readonly act: string; readonly arg: string }) => {
  try {
    process.send?.({ result: await ACTS[act]?.(arg) });
  } catch (error) {
    process.send?.({ failure: String(error) });
  }
});
process.send?.({ result: 'open' });
