// What requests do with sessions, without limits.
import type { Owner, SessionRecord, Store } from '../../../src/store/store.ts';

type SessionStore = Pick<Store, 'admitRequest'>;

/** @throws what the store says where it cannot read. */
export const readSession = (
  store: SessionStore,
  sessionId: string,
): Promise<SessionRecord | undefined> => accessSession(store, sessionId, undefined, undefined);

/** A call of `sub`: whether it found the session its own, which then has its full time again. */
export async function slideSession(
  store: SessionStore,
  sessionId: string,
  sub: string | undefined,
  ttlSeconds: number,
): Promise<boolean> {
  const session = await accessSession(
    store,
    sessionId,
    sub === undefined ? undefined : { sub },
    ttlSeconds,
  );
  return session !== undefined && session.userId === sub;
}

async function accessSession(
  store: SessionStore,
  sessionId: string,
  owner: Owner | undefined,
  slideSeconds: number | undefined,
): Promise<SessionRecord | undefined> {
  const { session } = await store.admitRequest([], { sessionId, owner, slideSeconds });
  if ('failure' in session) throw session.failure;
  return session.record;
}
