// §26.2, §26.3: requests to a guard, its answers, and bounds on both.
import type { UserContext } from '../../http/endpoint/message.ts';
import type { GuardedItem, GuardedMessage, GuardPoint } from '../../mcp/calls/guards.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { findExceededBound, isObject } from '../../platform/json.ts';
import { createWorkQueue } from '../../platform/work-queue.ts';
import { nameOwner } from '../../store/keys.ts';

/** The message that a guard receives; modules get it as is. */
export interface AskedMessage {
  readonly guard: string;
  readonly on: GuardPoint;
  /** The method of MCP: `tools/call` for both arguments and result of a tool. */
  readonly method: string;
  readonly phase: GuardPhase;
  /** `''` for the built-in catalogue. */
  readonly server: string;
  /** The tool or prompt, as clients of `/mcp` name it, or the URI; absent for a server as a whole. */
  readonly name?: string | undefined;
  /** JSON; numbers may be `JsonNumber`, which `writeExactJson` writes as received. */
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

/** The caller: claims of the token, never the token. */
interface AskedUser {
  readonly sub: string;
  readonly issuer?: string | undefined;
  readonly email?: string | undefined;
  readonly groups?: readonly string[] | undefined;
}

/** By point: method, phase, and an empty value for probes. */
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
  { value, caller }: Pick<GuardedMessage, 'value' | 'caller'>,
): AskedMessage {
  const [method, phase] = POINTS[on];
  const user = caller?.user;
  // One literal: spreads took longer than everything else that a guard in this process needs.
  return {
    guard,
    on,
    method,
    phase,
    server,
    name: name === '' ? undefined : name,
    value,
    user: user && { sub: user.sub, issuer: user.issuer, email: user.email, groups: user.groups },
    client: caller?.clientId,
    view: caller?.view,
    requestId: caller?.id,
    traceparent: caller?.trace.traceparent,
  };
}

/**
 * Has a guard check a message; may answer synchronously.
 *
 * @throws GuardFailure, TooMuchForGuard; any other error also counts as a failure.
 */
export type AskGuard = (message: AskedMessage, turn: GuardTurn) => Decision | Promise<Decision>;

export interface GuardTurn {
  readonly signal: CancelSignal | undefined;
  /** The user for fair queueing; undefined for messages of no particular caller. */
  readonly user: UserContext | undefined;
}

// Its answer, parsed without trust.

export type Decision =
  | { readonly kind: 'pass' }
  | { readonly kind: 'change'; readonly value: unknown }
  | { readonly kind: 'refuse'; readonly message: string | undefined };

export const PASS: Decision = { kind: 'pass' };

/** The guard could not be asked, or its answer is invalid; the message is for the log, without the guarded value. */
export class GuardFailure extends Error {
  override readonly name = 'GuardFailure';
}

/**
 * The message is too large, or waits too long: refused whatever `onError` says. Otherwise any caller could make a guard fail
 * open.
 */
export class TooMuchForGuard extends Error {
  override readonly name = 'TooMuchForGuard';
}

/** @throws GuardFailure for an invalid answer. */
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

// §26.3: bounds on requests in flight to one guard, and on their size.

/** Requests in flight, of all users, and of one user. */
const REQUESTS = { ofAll: 64, ofOne: 32 };
const MAX_WAITING = 1_024;
const MAX_WAITING_OF_ONE = 64;
/** Maximum length of a message as JSON, in characters. */
const MAX_SENT_CHARACTERS = 4_194_304;
/**
 * Measured with non-ASCII characters escaped, as many serializers write. Requests are well below the bound of answers, which may
 * repeat them: otherwise a caller could make a guard fail open.
 */
const MAX_ESCAPED = 6_291_456;
const ESCAPE_LENGTH = 6;
const SENT_BOUNDS = { levels: 180, values: 400_000 };
const SENT_PROBLEMS = {
  levels: `it nests deeper than ${SENT_BOUNDS.levels} levels`,
  values: `it has more than ${SENT_BOUNDS.values} values`,
};

/**
 * Fair queue: runs work when it is its user's turn.
 *
 * @throws TooMuchForGuard if too much of the caller's work waits, or the caller has disconnected.
 */
export function createGuardLine({ ofAll, ofOne } = REQUESTS) {
  const queue = createWorkQueue({
    maxRunning: ofAll,
    maxRunningOfOne: ofOne,
    maxWaiting: MAX_WAITING,
    maxWaitingOfOne: MAX_WAITING_OF_ONE,
    createRefusal: () => new TooMuchForGuard('too much waits for it; try again in a moment'),
  });
  return async function runInTurn<Result>(
    work: () => Promise<Result>,
    { user, signal }: GuardTurn,
  ): Promise<Result> {
    try {
      return await queue.run(work, { owner: user && nameOwner(user), signal });
    } catch (error) {
      // Not a GuardFailure: by disconnecting, a caller could make a guard fail open.
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
