// A client that knows the right answer to every call that it makes: which sessions are alive and who owns them, which have
// ended, which tokens are good. Ids and messages are never used twice, so that an answer meant for somebody else is seen.
import {
  type Call,
  createCallOfNoSession,
  createDelete,
  createInitialize,
  createPing,
  createStatelessPing,
  createUnauthorizedCall,
} from './calls.ts';
import { isTrueRefusal, type Refusal } from './refusals.ts';
import type { Requester, Response } from './requester.ts';
import { type AnswerKind, createTally, type Tally } from './tally.ts';
import type { User, Users } from './users.ts';

export interface KnowingClient {
  readonly tally: Tally;
  /** Opens as many sessions, and fails unless all are opened. */
  openSessions(count: number): Promise<void>;
  /** One call of the mix. */
  callAny(): Promise<void>;
  /** A call in a session that is alive. */
  ping(): Promise<AnswerKind>;
  /** A call of the stateless era. */
  callStateless(): Promise<AnswerKind>;
  /** From now on only these refusals are correct, in addition to 503 for overload. */
  allow(...refusals: readonly Refusal[]): void;
  /** From now on, sessions opened or ended in the last `ms` may exist or not. */
  forgetRecent(ms: number): void;
  /**
   * Calls in each session that is known to be alive, and each that is known to have ended. False
   * as soon as an answer is not the right one.
   */
  checkSessions(): Promise<boolean>;
  /** IDs of the live sessions. */
  readonly sessionIds: readonly string[];
}

interface KnownSession {
  readonly id: string;
  readonly user: User;
  /** When it was opened, or ended. */
  changedAt: number;
  callsUnderWay: number;
  /** It may exist or not: either answer is right. */
  isDoubtful: boolean;
}

/** A process that cannot keep up may always say so. */
const ALWAYS: readonly Refusal[] = ['overload'];

const MAX_SESSIONS = 200;
const MAX_ENDED = 100;

export function createKnowingClient(
  requester: Requester,
  users: Users,
  tally: Tally = createTally(),
  /** With several replicas: for so long, another one may still give the earlier answer. */
  endsHoldAfterMs = 0,
): KnowingClient {
  let alive: KnownSession[] = [];
  let ended: KnownSession[] = [];
  let allowed: ReadonlySet<Refusal> = new Set(ALWAYS);

  async function send(
    call: Call,
    session?: KnownSession,
  ): Promise<{ kind: AnswerKind; response: Response }> {
    const allowedAtFirst = allowed;
    const start = performance.now();
    const response = await requester.send(call.request);
    const ms = performance.now() - start;
    const fault = findFault(call, response);
    if (fault === undefined) {
      tally.record('good', ms);
      return { kind: 'good', response };
    }
    const isRefused =
      isTrueRefusal(response, allowedAtFirst) ||
      isTrueRefusal(response, allowed) ||
      (session?.isDoubtful && response.kind === 'answer' && response.status === 404);
    if (isRefused) {
      tally.record('refused', ms);
      return { kind: 'refused', response };
    }
    tally.recordWrong(`${call.what}: ${fault} (after ${Math.round(ms)} ms)`, ms);
    return { kind: 'wrong', response };
  }

  async function pingIn(session: KnownSession): Promise<AnswerKind> {
    session.callsUnderWay += 1;
    const { kind } = await send(createPing(session.user.token, session.id), session);
    session.callsUnderWay -= 1;
    return kind;
  }

  async function openSession(): Promise<AnswerKind> {
    const user = users.pick();
    const { kind, response } = await send(createInitialize(user.token));
    if (kind === 'good' && response.kind === 'answer') {
      alive.push({
        id: String(response.headers['mcp-session-id']),
        user,
        changedAt: performance.now(),
        callsUnderWay: 0,
        isDoubtful: false,
      });
    }
    return kind;
  }

  /** If the answer is lost or a refusal, the session may have ended or not. */
  async function endSession(): Promise<void> {
    const session = alive.find(({ callsUnderWay }) => callsUnderWay === 0);
    if (session === undefined) return;
    alive = alive.filter((other) => other !== session);
    const { kind } = await send(createDelete(session.user.token, session.id), session);
    if (kind !== 'good') return;
    session.changedAt = performance.now();
    ended = [...ended.slice(1 - MAX_ENDED), session];
  }

  async function callForeign(): Promise<void> {
    const { id, user } = pickSession();
    const other = users.pickOtherThan(user);
    await send(createCallOfNoSession("another user's session", other.token, id));
  }

  const listEndedForAll = () =>
    ended.filter(({ changedAt }) => performance.now() - changedAt >= endsHoldAfterMs);

  async function callEnded(): Promise<void> {
    const known = listEndedForAll();
    const session = known[Math.floor(Math.random() * known.length)];
    if (session === undefined) return callForeign();
    await send(createCallOfNoSession('ended session', session.user.token, session.id));
  }

  function pickSession(): KnownSession {
    const session = alive[Math.floor(Math.random() * alive.length)];
    if (session === undefined) throw new Error('No session is alive any more');
    return session;
  }

  const ping = () => pingIn(pickSession());

  async function callStateless(): Promise<AnswerKind> {
    return (await send(createStatelessPing(users.pick().token))).kind;
  }

  return {
    tally,
    async openSessions(count) {
      for (let tries = 0; alive.length < count; tries += 1) {
        if ((await openSession()) === 'wrong' || tries > 2 * count) {
          throw new Error(`No session could be opened: ${tally.wrongStories[0]}`);
        }
      }
    },
    async callAny() {
      const dice = Math.random();
      if (dice < 0.7) await ping();
      else if (dice < 0.82) await callStateless();
      else if (dice < 0.86) await callForeign();
      else if (dice < 0.9) await callEnded();
      else if (dice < 0.92) await send(createUnauthorizedCall('invalid_token', users.forgedToken));
      else if (dice < 0.93) await send(createUnauthorizedCall('expired_token', users.expiredToken));
      else if (dice < 0.94) await send(createUnauthorizedCall('missing_token', undefined));
      else if (dice < 0.97 && alive.length < MAX_SESSIONS) await openSession();
      else if (alive.length > MAX_SESSIONS / 10) await endSession();
      else await ping();
    },
    ping,
    callStateless,
    allow(...refusals) {
      allowed = new Set([...ALWAYS, ...refusals]);
    },
    forgetRecent(ms) {
      const isOld = ({ changedAt }: KnownSession) => performance.now() - changedAt > ms;
      for (const session of alive) session.isDoubtful = !isOld(session);
      alive = alive.filter(isOld);
      ended = ended.filter(isOld);
    },
    async checkSessions() {
      for (const session of [...alive]) {
        // One that was ended since is no longer alive.
        if (alive.includes(session) && (await pingIn(session)) !== 'good') return false;
      }
      for (const { id, user } of listEndedForAll()) {
        const { kind } = await send(createCallOfNoSession('ended session', user.token, id));
        if (kind !== 'good') return false;
      }
      return true;
    },
    get sessionIds() {
      return alive.map(({ id }) => id);
    },
  };
}

function findFault(call: Call, response: Response): string | undefined {
  if (response.kind === 'answer') return call.findFault(response);
  return response.isHang ? 'no answer' : `no answer: ${response.code}`;
}
