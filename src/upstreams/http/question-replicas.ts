// §18.3: a server has one stream for a session that several replicas go on with: what it asks there may be about a call that
// goes on at another replica, whose client only that one can ask. It answers the server, too.
import { randomUUID } from 'node:crypto';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import { createReplicas, type Replicas } from '../../store/replicas/replicas.ts';
import { readServerMessage, type ServerRequest } from '../messages/server-message.ts';
import { nameOwnSession, type UpstreamCaller, type UpstreamRuntime } from '../upstream.ts';
import type { ServerSession } from './server-session.ts';

export interface QuestionReplicas {
  /** From now on the others find those calls that `findPlace` finds. */
  join(): void;
  /** Resolves with true if another replica answers it. Never rejects. */
  pass(caller: UpstreamCaller, session: ServerSession, question: ServerRequest): Promise<boolean>;
  /** The server no longer wants an answer to what maybe another replica was given. */
  cancel(caller: UpstreamCaller, session: ServerSession, requestId: unknown): void;
  /** No stream is open here any more: many servers let a session have one only. */
  release(caller: UpstreamCaller, session: ServerSession): void;
  close(): void;
}

/** A client's session, and its session at the server: questions belong to both. */
export interface QuestionPlace {
  readonly caller: UpstreamCaller;
  readonly session: ServerSession;
}

interface QuestionHandlers {
  /** Undefined where no call of it goes on here. */
  findPlace(hash: string): QuestionPlace | undefined;
  answer(place: QuestionPlace, question: ServerRequest): void;
  /** Another replica has closed the stream of the session. */
  onRelease(place: QuestionPlace): void;
}

/** Milliseconds for another replica to say that it can answer. */
const LOOKING_MS = 2000;

/** The name of a place between replicas; undefined if no other replica knows it. */
export function hashPlace(caller: UpstreamCaller, { id }: ServerSession): string | undefined {
  const own = nameOwnSession(caller);
  return own === undefined || id === undefined ? undefined : hashSha256(JSON.stringify([own, id]));
}

export function createQuestionReplicas(
  { store, getSeal, clock, log, metrics }: UpstreamRuntime,
  channel: string,
  { findPlace, answer, onRelease }: QuestionHandlers,
): QuestionReplicas {
  /** Questions for which another replica is looked for. */
  const looking = new Map<string, (replica: string) => void>();
  let joined: Replicas<QuestionMessage> | undefined;

  /** Opened when it is needed: most servers never ask. */
  function join(): Replicas<QuestionMessage> {
    if (joined !== undefined) return joined;
    joined = createReplicas({
      store,
      getSeal,
      clock,
      log,
      metrics,
      channel,
      isMessage: isQuestionMessage,
    });
    joined.listen(receive);
    return joined;
  }

  function receive(message: QuestionMessage): void {
    if (message.about === 'here') looking.get(message.ticket)?.(message.from);
    else {
      const place = findPlace(message.place);
      if (place !== undefined) receiveAt(place, message);
    }
  }

  function receiveAt(place: QuestionPlace, message: PlacedMessage): void {
    if (message.about === 'released') onRelease(place);
    else if (message.about === 'cancelled') place.session.questions.cancel(message.requestId);
    else if (message.about === 'looking') {
      const { ticket, from } = message;
      const { ownName } = join();
      if (from !== ownName) send({ about: 'here', ticket, from: ownName }, from);
    } else {
      const { question: written } = message;
      // Its numbers as they were spelled: of what is in it nothing is noted.
      const question = readServerMessage(isObject(written) ? readExact(written) : written);
      if (question?.kind === 'request') answer(place, question);
    }
  }

  /** If a message is lost, the question times out at the server. */
  function send(message: QuestionMessage, to?: string): void {
    void join()
      .send(message, to)
      .catch((cause: unknown) => {
        log.debug('A question of a server could not be passed to another replica.', { cause });
      });
  }

  function findReplica(place: string): Promise<string | undefined> {
    const ticket = randomUUID();
    return new Promise((resolve) => {
      function settle(replica: string | undefined): void {
        cancelTimer();
        looking.delete(ticket);
        resolve(replica);
      }
      const cancelTimer = clock.after(LOOKING_MS, () => settle(undefined));
      looking.set(ticket, settle);
      send({ about: 'looking', ticket, place, from: join().ownName });
    });
  }

  return {
    join: () => void join(),
    async pass(caller, session, { id, method, params }) {
      const place = hashPlace(caller, session);
      const replica = place && (await findReplica(place));
      if (place === undefined || replica === undefined) return false;
      send({ about: 'question', place, question: { jsonrpc: '2.0', id, method, params } }, replica);
      return true;
    },
    cancel(caller, session, requestId) {
      const place = hashPlace(caller, session);
      if (place !== undefined) send({ about: 'cancelled', place, requestId });
    },
    release(caller, session) {
      const place = hashPlace(caller, session);
      if (place !== undefined) send({ about: 'released', place });
    },
    close: () => joined?.close(),
  };
}

type QuestionMessage =
  | PlacedMessage
  | { readonly about: 'here'; readonly ticket: string; readonly from: string };

type PlacedMessage =
  /** To all: who has a call of this place? */
  | {
      readonly about: 'looking';
      readonly ticket: string;
      readonly place: string;
      readonly from: string;
    }
  /** To the first that has one. */
  | { readonly about: 'question'; readonly place: string; readonly question: unknown }
  /** To all. */
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
