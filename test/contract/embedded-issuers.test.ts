// §2.1: the sessions of users, once OIDC_ISSUER has changed.
import { join } from 'node:path';
import { open as openLmdb } from 'lmdb';
import { expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/store/embedded/open.ts';
import type { SessionRecord, Store } from '../../src/store/store.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../support/lifetimes.ts';
import { readSession } from '../support/stores/session-steps.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { ALL, newSession } from './harness.ts';

const A = 'https://a.example';
const B = 'https://b.example';
const TTL = 60;

const folder = useFresh(createTemporaryFolder);

/** Works on the store of a process whose OIDC_ISSUER is `defaultIssuer`. */
async function workAs<Result>(
  defaultIssuer: string,
  clock: ReturnType<typeof manualClock>,
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const { log } = collectLog();
  const options = { dataDir: folder.path, sessionKeyPrefix: 'mcp:session:', clock, log };
  const store = closeAfterTest(await openEmbeddedStore({ ...options, defaultIssuer }));
  const result = await work(store);
  await store.close();
  return result;
}

const sessionOf = (userIssuer: string): SessionRecord => newSession({ userIssuer });

async function countEntries(name: string): Promise<number> {
  const root = openLmdb({ path: join(folder.path, 'store.mdb'), noSubdir: true });
  const count = root.openDB({ name }).getKeysCount();
  await root.close();
  return count;
}

const listIds = async (store: Store, issuer?: string) =>
  (await store.listSessions(ALL, { sub: 'ada', ...(issuer && { issuer }) })).items.map(
    ({ record }) => record.sessionId,
  );

test('§22.2 what the user of the issuer before had open is not listed as that of the user now', async () => {
  const clock = manualClock();
  const [before, after] = [sessionOf(A), sessionOf(B)];
  await workAs(A, clock, (store) => store.createSession(before, TTL, 2));
  await workAs(B, clock, async (store) => {
    await store.createSession(after, TTL, 2);
    expect(await listIds(store)).toEqual([after.sessionId]);
    expect(await readSession(store, before.sessionId)).toEqual(before);
  });
});

test('§3.1 the sessions of the user before are ended first, where there are too many', async () => {
  const clock = manualClock();
  const [before, ...after] = [sessionOf(A), sessionOf(B), sessionOf(B), sessionOf(B)];
  await workAs(A, clock, (store) => store.createSession(before, TTL, 2));
  await workAs(B, clock, async (store) => {
    const ended: (readonly string[])[] = [];
    for (const session of after) {
      clock.advance(1000);
      ended.push(await store.createSession(session, TTL, 2));
    }
    expect(ended).toEqual([[], [before.sessionId], [after[0]?.sessionId]]);
  });
});

test.each([
  { how: 'changed', issuers: [B] },
  { how: 'changed, and changed back', issuers: [B, A] },
])(
  '§3.1 an expired session leaves nothing behind after OIDC_ISSUER was $how',
  async ({ issuers }) => {
    const clock = manualClock();
    const session = sessionOf(A);
    await workAs(A, clock, (store) => store.createSession(session, TTL, 2));
    for (const issuer of issuers) {
      await workAs(issuer, clock, async (store) => {
        // Its user has others: so its entry is put again under what names the user now.
        await store.createSession(sessionOf(A), TTL, 2);
        const owner = { sub: 'ada', issuer: A };
        const access = { sessionId: session.sessionId, owner, slideSeconds: 10 * TTL };
        await store.admitRequest([], access);
        clock.advance(TTL * 1000 + 1);
        await store.sweepSessions();
        expect(await store.countSessions()).toBe(1);
      });
    }
    clock.advance(10 * TTL * 1000);
    expect(await workAs(B, clock, (store) => store.sweepSessions())).toBe(1);
    for (const name of ['sessions', 'session-index', 'sessions-due', 'user-sessions-due']) {
      expect(await countEntries(name), name).toBe(0);
    }
  },
);
