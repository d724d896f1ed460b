// §18.3: many servers ask on the stream of their session (GET), and drop what they ask while nobody listens there: so it is open
// before the first call of a client that can be asked is sent, and for a while after the last one.

import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import { nameOwner } from '../../store/owner.ts';
import type { HeldStream, HeldStreams } from '../transport/held-streams.ts';
import type { UpstreamCaller, UpstreamRequest, UpstreamRuntime } from '../upstream.ts';
import { HELD_OPEN, type ServerListeners } from './listeners.ts';
import { hashPlace, type QuestionPlace, type QuestionReplicas } from './question-replicas.ts';
import {
  type HeldForQuestions,
  listAskable,
  nameSharer,
  type ServerSession,
} from './server-session.ts';

export interface QuestionStreams {
  /**
   * Before a request is sent. Resolves once the server can ask, or it is known that it will not; undefined where, as nearly always,
   * nothing has to be waited for.
   */
  hold(
    caller: UpstreamCaller,
    session: ServerSession,
    request: UpstreamRequest,
  ): Promise<void> | undefined;
  /** Places with calls whose client may be asked, by the hash that other replicas use. */
  findPlace(hash: string): QuestionPlace | undefined;
  /** The caller's session has ended. */
  end(caller: UpstreamCaller): void;
  close(): void;
}

/** Some servers do not begin their answer before they have something to say. */
const OPENING_MS = 1000;

interface Held extends HeldStream, HeldForQuestions {}

/** `getReplicas` gives nothing where no other process shares the store. */
export function createQuestionStreams(
  { clock, log }: Pick<UpstreamRuntime, 'clock' | 'log'>,
  server: { readonly name: string; readonly listen: ServerListeners['listen'] },
  heldStreams: HeldStreams,
  getReplicas: () => Pick<QuestionReplicas, 'join' | 'release'> | undefined,
): QuestionStreams {
  const { name, listen } = server;
  const bySharer = new Map<string, Held>();
  const places = new Map<string, { readonly held: Held; readonly session: ServerSession }>();
  const warnOfRoom = createWarnThrottle(clock, () =>
    log.warn(
      `The MCP server ${name} cannot ask clients on its GET stream now: too many such streams are open for the calls of this user, or of all. Questions on the stream of a call still reach its client. Add replicas, or let fewer calls run at once.`,
      { server: name },
    ),
  );

  function open(caller: UpstreamCaller, session: ServerSession): Promise<void> | undefined {
    const sharer = nameSharer(caller);
    // It was for a session that the server has lost.
    bySharer.get(sharer)?.close();
    let noteAttempt = () => {};
    let stop = () => {};
    let opening: Promise<void> | undefined;
    const place = getReplicas() && hashPlace(caller, session);
    const held: Held = {
      caller,
      user: caller.user && nameOwner(caller.user),
      usedAt: clock.monotonic(),
      isBusy: () => opening !== undefined || session.openRequests.size > 0,
      get opening() {
        return opening;
      },
      noteAttempt: () => noteAttempt(),
      close() {
        heldStreams.remove(held);
        if (bySharer.get(sharer) === held) bySharer.delete(sharer);
        if (session.held === held) session.held = undefined;
        if (place !== undefined) places.delete(place);
        noteAttempt();
        stop();
        getReplicas()?.release(caller, session);
      },
    };
    if (!heldStreams.add(held)) {
      warnOfRoom();
      return undefined;
    }
    bySharer.set(sharer, held);
    session.held = held;
    if (place !== undefined) places.set(place, { held, session });
    getReplicas()?.join();
    if (session.standing === 0) {
      opening = new Promise((resolve) => {
        const cancelTimer = clock.after(OPENING_MS, () => noteAttempt());
        noteAttempt = () => {
          cancelTimer();
          opening = undefined;
          resolve();
        };
      });
    }
    stop = listen(caller, HELD_OPEN, undefined);
    return opening;
  }

  return {
    hold(caller, session, request) {
      const { held } = session;
      if (held !== undefined) {
        held.caller = caller;
        held.usedAt = session.usedAt;
        return held.opening;
      }
      const isNeeded =
        request.onRequest !== undefined &&
        session.id !== undefined &&
        !session.refusesStream &&
        canBeAsked(caller.capabilities);
      return isNeeded ? open(caller, session) : undefined;
    },
    findPlace(hash) {
      const { held, session } = places.get(hash) ?? {};
      if (held === undefined || session === undefined) return undefined;
      const { caller } = held;
      return listAskable(caller, session).length > 0 ? { caller, session } : undefined;
    },
    end: (caller) => bySharer.get(nameSharer(caller))?.close(),
    close() {
      for (const held of [...bySharer.values()]) held.close();
    },
  };
}

const canBeAsked = ({ elicitation, elicitationUrl, sampling, roots }: ClientCapabilities) =>
  elicitation || elicitationUrl === true || sampling || roots;
