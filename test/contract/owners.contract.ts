// §2.1: whose a session is, and how every driver tells users of several issuers apart.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Owner, SessionRecord, Store } from '../../src/store/store.ts';
import { readSession } from '../support/stores/session-steps.ts';
import { ALL, type Harness, newSession, TTL } from './harness.ts';

const OTHER_ISSUER = 'https://other.example';

export function describeOwners(name: string, open: () => Promise<Harness>): void {
  let harness: Harness;
  let store: Store;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  const create = async (members: Partial<SessionRecord>, userMax = 0) => {
    const session = newSession(members);
    return { id: session.sessionId, ended: await store.createSession(session, TTL, userMax) };
  };

  /** What a call by `owner` leaves of the time that a session has, which it gives back if it is its own. */
  async function slide(sessionId: string, owner: Owner | undefined): Promise<void> {
    const access = { sessionId, owner, slideSeconds: TTL };
    await harness.other.admitRequest([], access);
  }

  const isAlive = async (id: string) => (await readSession(store, id)) !== undefined;

  const idsOf = async (owner: Owner) =>
    (await store.listSessions(ALL, owner)).items.map(({ record }) => record.sessionId);

  describe(`owners of sessions in the ${name} store`, () => {
    const rows = [
      {
        what: 'names no issuer',
        userIssuer: undefined,
        own: { sub: 'ada' },
        others: [{ sub: 'ada', issuer: OTHER_ISSUER }, { sub: 'eve' }, undefined],
      },
      {
        what: 'names an issuer',
        userIssuer: OTHER_ISSUER,
        own: { sub: 'ada', issuer: OTHER_ISSUER },
        others: [
          { sub: 'ada' },
          { sub: 'ada', issuer: 'https://third.example' },
          { sub: 'eve', issuer: OTHER_ISSUER },
          undefined,
        ],
      },
    ];

    test.each(rows)(
      '§2.1 a session that $what is read as it was written',
      async ({ userIssuer }) => {
        const session = newSession({ ...(userIssuer !== undefined && { userIssuer }) });
        await store.createSession(session, TTL);
        expect(await readSession(harness.other, session.sessionId)).toEqual(session);
      },
    );

    test.each(rows)('§3.1 a session that $what slides for its owner alone', async (row) => {
      for (const owner of [row.own, ...row.others]) {
        const { id } = await create({ userIssuer: row.userIssuer });
        await harness.advance((TTL - 10) * 1000);
        await slide(id, owner);
        await harness.advance(11_000);
        expect(await isAlive(id)).toBe(owner === row.own);
      }
    });

    test.each(rows)('§3.1 a session that $what is changed by its owner alone', async (row) => {
      const { id } = await create({ userIssuer: row.userIssuer });
      for (const owner of row.others) {
        expect(await store.setSessionLogLevel(id, owner, 'error')).toBe(false);
      }
      expect((await readSession(store, id))?.logLevel).toBeUndefined();
      expect(await store.setSessionLogLevel(id, row.own, 'error')).toBe(true);
      expect((await readSession(store, id))?.logLevel).toBe('error');
    });

    test.each(rows)('§3.1 a session that $what is ended by its owner alone', async (row) => {
      const { id } = await create({ userIssuer: row.userIssuer }, 100);
      for (const other of row.others) expect(await store.endSession(id, other)).toBe(false);
      expect(await store.endSession(id, row.own)).toBe(true);
      expect(await isAlive(id)).toBe(false);
      expect(await idsOf(row.own)).not.toContain(id);
    });

    test('§12 users of one sub have sessions of their own, as many as are allowed', async () => {
      const sub = randomUUID();
      const issuers = [undefined, OTHER_ISSUER, 'https://third.example'];
      const of = (issuer: string | undefined) => ({ userId: sub, userIssuer: issuer });
      const first: string[] = [];
      for (const issuer of issuers) {
        const { id, ended } = await create(of(issuer), 2);
        expect(ended).toEqual([]);
        first.push(id);
        await harness.advance(1000);
        expect((await create(of(issuer), 2)).ended).toEqual([]);
        await harness.advance(1000);
      }
      for (const [at, issuer] of issuers.entries()) {
        expect((await create(of(issuer), 2)).ended).toEqual([first[at]]);
      }
    });

    test('§12 no sub reads like a user of another issuer', async () => {
      const sub = randomUUID();
      const { id } = await create({ userId: sub, userIssuer: OTHER_ISSUER }, 1);
      for (const forged of [
        JSON.stringify([OTHER_ISSUER, sub]),
        JSON.stringify(['', JSON.stringify([OTHER_ISSUER, sub])]),
      ]) {
        expect((await create({ userId: forged }, 1)).ended).toEqual([]);
        expect(await idsOf({ sub: forged })).not.toContain(id);
      }
      expect(await isAlive(id)).toBe(true);
    });

    test('§22.2 the sessions of one user are listed without those of another issuer', async () => {
      const sub = randomUUID();
      const ours = await create({ userId: sub }, 100);
      const theirs = await create({ userId: sub, userIssuer: OTHER_ISSUER }, 100);
      expect(await idsOf({ sub })).toEqual([ours.id]);
      expect(await idsOf({ sub, issuer: OTHER_ISSUER })).toEqual([theirs.id]);
    });

    test('§3.1 the sweep leaves each session with its own user', async () => {
      const sub = randomUUID();
      const owners: readonly Owner[] = [{ sub }, { sub, issuer: OTHER_ISSUER }];
      const ids: string[] = [];
      for (const { issuer: userIssuer } of owners) {
        ids.push((await create({ userId: sub, userIssuer }, 1)).id);
      }
      await harness.advance((TTL - 10) * 1000);
      for (const [at, owner] of owners.entries()) await slide(ids[at] ?? '', owner);
      await harness.advance(11_000);
      await store.sweepSessions();
      for (const [at, owner] of owners.entries()) {
        expect(await idsOf(owner)).toEqual([ids[at]]);
        const { ended } = await create({ userId: sub, userIssuer: owner.issuer }, 1);
        expect(ended).toEqual([ids[at]]);
      }
    });
  });
}
