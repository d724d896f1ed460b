// §26.2, §26.3: how a guard is asked: what it is told, what it answers, and how much of that there may be at once.
import type { UserContext } from '../../http/endpoint/message.ts';
import type { GuardCaller, GuardedItem, GuardPoint } from '../../mcp/calls/guards.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { findExceededBound, isObject } from '../../platform/json.ts';
import { createFairQueue, QueueFullError } from '../../platform/work-queue.ts';
import { nameOwner } from '../../store/owner.ts';

/** As a module gets it. */
export interface AskedMessage {
  readonly guard: string;
  readonly on: GuardPoint;
  /** The method of MCP: `tools/call` for a tool's arguments and for its result. */
  readonly method: string;
  readonly phase: GuardPhase;
  /** `''` for the built-in catalogue. */
  readonly server: string;
  /** The name of the tool or prompt as clients of `/mcp` see it, or the URI; left out where it is about a server as a whole. */
  readonly name?: string | undefined;
  /** As JSON, in which numbers may be `JsonNumber`: `writeExactJson` spells them as they came. */
  readonly value: unknown;
  readonly user?: AskedUser | undefined;
  /** OAuth client ID. */
  readonly client?: string | undefined;
  readonly view?: string | undefined;
  readonly requestId?: string | number | undefined;
  /** W3C Trace Context. */
  readonly traceparent?: string | undefined;
}

type GuardPhase = 'request' | 'response';

/** The caller: what the token says, never the token. */
interface AskedUser {
  readonly sub: string;
  readonly issuer?: string | undefined;
  readonly email?: string | undefined;
  readonly groups?: readonly string[] | undefined;
}

/** Each point: what it is a message of, and a value in which there is nothing, to ask only whether a guard answers. */
export const POINTS: Readonly<
  Record<GuardPoint, readonly [method: string, phase: GuardPhase, sample: unknown]>
> = {
  'tools/list': [
    'tools/list',
    'response',
    { name: 'postern-check', inputSchema: { type: 'object' } },
  ],
  'tools/call': ['tools/call', 'request', { name: 'postern-check', arguments: {} }],
  'tools/result': ['tools/call', 'response', { content: [] }],
  'prompts/list': ['prompts/list', 'response', { name: 'postern-check' }],
  'prompts/get': ['prompts/get', 'request', { name: 'postern-check', arguments: {} }],
  'prompts/result': ['prompts/get', 'response', { messages: [] }],
  'resources/list': ['resources/list', 'response', { uri: 'check:postern', name: 'postern-check' }],
  'resources/read': ['resources/read', 'request', { uri: 'check:postern' }],
  'resources/result': ['resources/read', 'response', { contents: [] }],
  'resources/subscribe': ['resources/subscribe', 'request', { uri: 'check:postern' }],
  'skills/list': [
    'skills/list',
    'response',
    {
      uri: 'check:postern/check/SKILL.md',
      frontmatter: { name: 'check', description: 'check' },
      resources: 'dynamic',
    },
  ],
  'completion/complete': [
    'completion/complete',
    'request',
    { ref: { type: 'ref/prompt', name: 'postern-check' }, argument: { name: 'check', value: '' } },
  ],
  'completion/result': ['completion/complete', 'response', { completion: { values: [] } }],
  instructions: ['server/instructions', 'response', ''],
  sampling: ['sampling/createMessage', 'request', { messages: [], maxTokens: 1 }],
  'sampling/result': [
    'sampling/createMessage',
    'response',
    { role: 'assistant', model: '', content: { type: 'text', text: '' } },
  ],
  elicitation: [
    'elicitation/create',
    'request',
    { message: '', requestedSchema: { type: 'object', properties: {} } },
  ],
  'elicitation/result': ['elicitation/create', 'response', { action: 'cancel' }],
  roots: ['roots/list', 'request', {}],
  'roots/result': ['roots/list', 'response', { roots: [] }],
  notifications: [
    'notifications',
    'request',
    { method: 'notifications/message', params: { level: 'debug', data: '' } },
  ],
  approval: ['approval', 'request', { name: 'postern-check', arguments: {} }],
};

export function describeMessage(
  guard: string,
  on: GuardPoint,
  { name, server }: GuardedItem,
  value: unknown,
  caller: GuardCaller | undefined,
): AskedMessage {
  const [method, phase] = POINTS[on];
  const named = name === '' ? undefined : name;
  if (caller === undefined) return { guard, on, method, phase, server, name: named, value };
  const { user, clientId, view, requestId, trace } = caller;
  // One literal: spread from parts it took longer than all else that is done for a guard in this process.
  return {
    guard,
    on,
    method,
    phase,
    server,
    name: named,
    value,
    user: user && { sub: user.sub, issuer: user.issuer, email: user.email, groups: user.groups },
    client: clientId,
    view,
    requestId,
    traceparent: trace.traceparent,
  };
}

/**
 * Asks a guard about a message. Answers at once where that is at hand.
 *
 * @throws GuardFailure, TooMuchForGuard; and whatever else, which is a failure, too.
 */
export type AskGuard = (message: AskedMessage, turn: GuardTurn) => Decision | Promise<Decision>;

export interface GuardTurn {
  readonly signal: CancelSignal | undefined;
  /** The user whose turn it is; undefined for what concerns nobody in particular. */
  readonly user: UserContext | undefined;
}

// Its answer, read without trust.

export type Decision =
  | { readonly kind: 'pass' }
  | { readonly kind: 'change'; readonly value: unknown }
  | { readonly kind: 'refuse'; readonly message: string | undefined };

export const PASS: Decision = { kind: 'pass' };

/** The guard could not be asked, or answered what cannot be used; the message is for the log, without what it was asked. */
export class GuardFailure extends Error {
  override readonly name = 'GuardFailure';
}

/**
 * A message of a caller cannot be asked about: there is too much of it. It is refused whatever `onError` says, or everybody could
 * have a guard fail that lets pass.
 */
export class TooMuchForGuard extends Error {
  override readonly name = 'TooMuchForGuard';
}

/** @throws GuardFailure for what is none. */
export function readDecision(answer: unknown): Decision {
  if (!isObject(answer)) throw new GuardFailure('its answer is not an object');
  const { decision, message, value } = answer;
  switch (decision) {
    case 'pass':
      return PASS;
    case 'refuse':
      return { kind: 'refuse', message: typeof message === 'string' ? message : undefined };
    case 'change':
      if (value === undefined) throw new GuardFailure('it answered "change" without a value');
      return { kind: 'change', value };
    default:
      throw new GuardFailure('its answer has no "decision" that is pass, change or refuse');
  }
}

// §26.3: bounds of what is asked of one guard at once, and of what it is sent.

/** Requests at once, of all users together, and of one user. */
const REQUESTS = { ofAll: 64, ofOne: 32 };
const MAX_WAITING = 1_024;
const MAX_WAITING_OF_ONE = 64;
/** For a message as JSON text. */
const MAX_SENT_CHARACTERS = 4_194_304;
/**
 * With all but ASCII escaped, as many write JSON. What is sent is well within the bounds of an answer, which may have all of it
 * in it: else whoever chooses a message could have a guard fail that lets pass.
 */
const MAX_ESCAPED = 6_291_456;
const ESCAPE_LENGTH = 6;
const SENT_BOUNDS = { levels: 180, values: 400_000 };
const SENT_PROBLEMS = {
  levels: `it nests deeper than ${SENT_BOUNDS.levels} levels`,
  values: `it has more than ${SENT_BOUNDS.values} values`,
};

/**
 * Runs work when it is its user's turn.
 *
 * @throws TooMuchForGuard where too much of the caller's waits, or the caller does not any more.
 */
export function createGuardLine({ ofAll, ofOne } = REQUESTS) {
  const queue = createFairQueue({
    maxRunning: ofAll,
    maxRunningOfOne: ofOne,
    maxWaiting: MAX_WAITING,
    maxWaitingOfOne: MAX_WAITING_OF_ONE,
  });
  return async function runInTurn<Result>(
    work: () => Promise<Result>,
    { user, signal }: GuardTurn,
  ): Promise<Result> {
    try {
      return await queue.run(work, user && nameOwner(user), signal);
    } catch (error) {
      if (error instanceof QueueFullError)
        throw new TooMuchForGuard('too much waits for it; try again in a moment');
      // Whoever leaves could have any guard fail that lets pass.
      throw signal?.aborted ? new TooMuchForGuard('the caller no longer waits for it') : error;
    }
  };
}

/** @throws TooMuchForGuard */
export function toSentText(message: object): string {
  const text = writeExactJson(message);
  if (text.length > MAX_SENT_CHARACTERS)
    throw new TooMuchForGuard(`it has more than ${MAX_SENT_CHARACTERS} characters`);
  if (isTooLongEscaped(text))
    throw new TooMuchForGuard(`it has more than ${MAX_ESCAPED} characters once it is escaped`);
  const exceeded = findExceededBound(text, SENT_BOUNDS);
  if (exceeded !== undefined) throw new TooMuchForGuard(SENT_PROBLEMS[exceeded]);
  return text;
}

function isTooLongEscaped(text: string) {
  if (text.length * ESCAPE_LENGTH <= MAX_ESCAPED) return false;
  let length = text.length;
  for (let at = 0; at < text.length; at += 1) {
    if (text.charCodeAt(at) > LAST_ASCII) length += ESCAPE_LENGTH - 1;
  }
  return length > MAX_ESCAPED;
}

const LAST_ASCII = 0x7e;
