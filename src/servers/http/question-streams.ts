// §18.3: holds the GET stream of a session open for the server's questions. Many servers ask on it, and drop their questions while
// it is closed: so it is opened before the first call of a client that can be asked, and stays open for a while after the last
// call.
import { randomUUID } from 'node:crypto';
import {
  nameOwnSession,
  type UpstreamCaller,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import { nameOwner } from '../../store/keys.ts';
import { createReplicas, type Replicas } from '../../store/replicas/replicas.ts';
import { readServerMessage, type ServerRequest } from '../messages/server-message.ts';
import type { HeldStream, ProcessShare } from '../transport/process-share.ts';
import { HELD_OPEN, type ServerListeners } from './listeners.ts';
import { type HeldForQuestions, listAskable, nameSharer, type ServerSession } from './sessions.ts';

export type QuestionStreams = ReturnType<typeof createQuestionStreams>;

/** Some servers do not send the response head before the first event. */
const OPENING_MS = 1000;

interface Held extends HeldStream, HeldForQuestions {}

interface QuestionPorts {
  readonly listen: ServerListeners['listen'];
  readonly retry: ServerListeners['retry'];
  /** Answers a question that arrived on another replica. */
  answer(caller: UpstreamCaller, session: ServerSession, question: ServerRequest): Promise<void>;
}

export function createQuestionStreams(
  runtime: UpstreamRuntime,
  { name, channel }: { readonly name: string; readonly channel: string },
  { heldStreams, hasReplicas }: ProcessShare,
  { listen, retry, answer }: QuestionPorts,
) {
  const { clock, log } = runtime;
  const bySharer = new Map<string, Held>();
  const places = new Map<string, { readonly held: Held; readonly session: ServerSession }>();
  /** Undefined if no other process shares the store. */
  const replicas = hasReplicas
    ? createQuestionReplicas(runtime, channel, {
        findPlace,
        answer,
        onRelease({ caller, session }) {
          if (session.openStreams === 0) retry(caller);
        },
      })
    : undefined;
  const warnOfRoom = createWarnThrottle(clock, () =>
    log.warn(
      `The MCP server ${name} cannot ask clients on its GET stream now: too many such streams are open for the calls of this user, or of all. Questions on the stream of a call still reach its client. Add replicas, or let fewer calls run at once.`,
      { server: name },
    ),
  );

  function open(caller: UpstreamCaller, session: ServerSession): Promise<void> | undefined {
    const sharer = nameSharer(caller);
    // The previous stream belonged to a session that the server has lost.
    bySharer.get(sharer)?.close();
    let noteAttempt = () => {};
    let stop = () => {};
    let opening: Promise<void> | undefined;
    const place = replicas && hashPlace(caller, session);
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
        replicas?.release(caller, session);
      },
    };
    if (!heldStreams.add(held)) {
      warnOfRoom();
      return undefined;
    }
    bySharer.set(sharer, held);
    session.held = held;
    if (place !== undefined) places.set(place, { held, session });
    replicas?.join();
    if (session.openStreams === 0) {
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

  /** Places with calls whose client may be asked, by the hash that other replicas use. */
  function findPlace(hash: string): QuestionPlace | undefined {
    const { held, session } = places.get(hash) ?? {};
    if (held === undefined || session === undefined) return undefined;
    const { caller } = held;
    return listAskable(caller, session).length > 0 ? { caller, session } : undefined;
  }

  return {
    replicas,
    /**
     * Called before a request is sent in a session whose clients can be asked. Resolves once the server can ask, it is known
     * that it cannot, or `OPENING_MS` have passed; undefined if the request need not wait, which is nearly always the case.
     */
    hold(caller: UpstreamCaller, session: ServerSession, request: UpstreamRequest) {
      const { held } = session;
      if (held !== undefined) {
        held.caller = caller;
        held.usedAt = session.usedAt;
        return held.opening;
      }
      const isNeeded =
        request.onRequest !== undefined && session.id !== undefined && !session.refusesStream;
      return isNeeded ? open(caller, session) : undefined;
    },
    /** The caller's session has ended. */
    end: (caller: UpstreamCaller) => bySharer.get(nameSharer(caller))?.close(),
    close() {
      for (const held of [...bySharer.values()]) held.close();
      replicas?.close();
    },
  };
}

// §18.3: questions between replicas. A server has one stream for a session that several replicas use: a question on it may belong
// to a call on another replica. Only that replica can ask the client, and it also answers the server.

/** A client's session, and its session at the server: questions belong to both. */
interface QuestionPlace {
  readonly caller: UpstreamCaller;
  readonly session: ServerSession;
}

/** Milliseconds in which another replica has to say that it can answer. */
const LOOKING_MS = 2000;

/** The name of a place in messages between replicas; undefined if no other replica knows the place. */
function hashPlace(caller: UpstreamCaller, { id }: ServerSession) {
  const own = nameOwnSession(caller);
  return own === undefined || id === undefined ? undefined : hashSha256(JSON.stringify([own, id]));
}

interface ReplicaPorts extends Pick<QuestionPorts, 'answer'> {
  /** Undefined if the place has no call in flight on this replica. */
  findPlace(hash: string): QuestionPlace | undefined;
  /** Called when another replica has closed its stream of the session. */
  onRelease(place: QuestionPlace): void;
}

function createQuestionReplicas(
  runtime: UpstreamRuntime,
  channel: string,
  { findPlace, answer, onRelease }: ReplicaPorts,
) {
  /** Questions for which the gateway is looking for another replica. */
  const looking = new Map<string, (replica: string) => void>();
  let joined: Replicas<QuestionMessage> | undefined;

  /** Joins the channel on first use: most servers never ask. */
  function join() {
    if (joined !== undefined) return joined;
    joined = createReplicas(runtime, channel, isQuestionMessage);
    joined.listen(receive);
    return joined;
  }

  function receive(message: QuestionMessage) {
    if (message.about === 'here') {
      looking.get(message.ticket)?.(message.from);
      return;
    }
    const place = findPlace(message.place);
    if (place === undefined) return;
    if (message.about === 'released') onRelease(place);
    else if (message.about === 'cancelled') place.session.questions.cancel(message.requestId);
    else if (message.about === 'looking') {
      const { ticket, from } = message;
      const { ownName } = join();
      if (from !== ownName) send({ about: 'here', ticket, from: ownName }, from);
    } else {
      const { question: written } = message;
      // Parsed so that numbers keep their original spelling.
      const question = readServerMessage(isObject(written) ? readExact(written) : written);
      if (question?.kind === 'request') void answer(place.caller, place.session, question);
    }
  }

  /** If a message is lost, the question times out at the server. */
  function send(message: QuestionMessage, to?: string) {
    void join()
      .send(message, to)
      .catch((cause: unknown) => {
        runtime.log.debug('A question of a server could not be passed to another replica.', {
          cause,
        });
      });
  }

  function findReplica(place: string): Promise<string | undefined> {
    const ticket = randomUUID();
    return new Promise((resolve) => {
      function settle(replica: string | undefined) {
        cancelTimer();
        looking.delete(ticket);
        resolve(replica);
      }
      const cancelTimer = runtime.clock.after(LOOKING_MS, () => settle(undefined));
      looking.set(ticket, settle);
      send({ about: 'looking', ticket, place, from: join().ownName });
    });
  }

  return {
    /** Lets the other replicas find the calls that `findPlace` finds. */
    join: () => void join(),
    /** Resolves to true if another replica answers the question. Never rejects. */
    async pass(
      caller: UpstreamCaller,
      session: ServerSession,
      { id, method, params }: ServerRequest,
    ) {
      const place = hashPlace(caller, session);
      const replica = place && (await findReplica(place));
      if (place === undefined || replica === undefined) return false;
      send({ about: 'question', place, question: { jsonrpc: '2.0', id, method, params } }, replica);
      return true;
    },
    /** Called when the server cancels a question that another replica may have. */
    cancel(caller: UpstreamCaller, session: ServerSession, requestId: unknown) {
      const place = hashPlace(caller, session);
      if (place !== undefined) send({ about: 'cancelled', place, requestId });
    },
    /** Tells the other replicas that the stream is closed here: many servers allow a session only one. */
    release(caller: UpstreamCaller, session: ServerSession) {
      const place = hashPlace(caller, session);
      if (place !== undefined) send({ about: 'released', place });
    },
    close: () => joined?.close(),
  };
}

type QuestionMessage =
  /** To all replicas: asks for one with a call of this place. */
  | {
      readonly about: 'looking';
      readonly ticket: string;
      readonly place: string;
      readonly from: string;
    }
  | { readonly about: 'here'; readonly ticket: string; readonly from: string }
  /** To the first replica that has such a call. */
  | { readonly about: 'question'; readonly place: string; readonly question: unknown }
  /** To all replicas. */
  | { readonly about: 'cancelled'; readonly place: string; readonly requestId: unknown }
  | { readonly about: 'released'; readonly place: string };

const MEMBERS: Readonly<Record<QuestionMessage['about'], readonly string[]>> = {
  looking: ['ticket', 'place', 'from'],
  here: ['ticket', 'from'],
  question: ['place'],
  cancelled: ['place'],
  released: ['place'],
};

const isAbout = (about: unknown): about is QuestionMessage['about'] =>
  typeof about === 'string' && Object.hasOwn(MEMBERS, about);

const isQuestionMessage = (value: unknown): value is QuestionMessage =>
  isObject(value) &&
  isAbout(value.about) &&
  MEMBERS[value.about].every((member) => typeof value[member] === 'string');
