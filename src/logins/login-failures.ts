// §22.4: list of the last failed logins at all replicas, for operators.

import type { GatewayError } from '../errors/gateway-error.ts';
import type { AuthRequest } from '../http/endpoint/bearer.ts';
import { toAddressKey } from '../platform/address.ts';
import type { Clock } from '../platform/clock.ts';
import { isObject, parseObject } from '../platform/json.ts';
import { stripUrisIn } from '../platform/secret-texts.ts';
import { createWarnThrottle } from '../platform/throttle.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { LOGIN_FAILURES_KEY } from '../store/keys.ts';

/** Never has a token, a code or a secret. */
export interface LoginFailure {
  /** Step that failed. */
  readonly step: LoginStep;
  /** OAuth client ID, as sent. */
  readonly client: string | undefined;
  readonly ip: string;
  /** Key of the error catalogue, or the log's name for a refusal by provider or user. */
  readonly error: string;
  /** The problem, as the caller or the log was told. */
  readonly message: string;
}

/** `call`: the client got a token, which the gateway does not accept. */
export type LoginStep = 'register' | 'authorize' | 'consent' | 'callback' | 'token' | 'call';

export interface NotedLoginFailure extends LoginFailure {
  /** ISO 8601, UTC. */
  readonly time: string;
}

/** Returns at once: no request waits for the store here. */
export type NoteLoginFailure = (failure: LoginFailure) => void;

export type LoginFailures = ReturnType<typeof createLoginFailures>;

const BOUNDS = { max: 100, ttlSeconds: 7 * 86_400 };
/** Per process: an attacker who fails on purpose must not cause endless writes. */
const MAX_PER_MINUTE = 30;
const MINUTE_MS = 60_000;
/** Per address: one stranger must not push all others out of the list. */
const MAX_PER_ADDRESS_AND_HOUR = 20;
const HOUR_MS = 3_600_000;
const MAX_TEXT = 500;

export function createLoginFailures({ store, clock, log }: Runtime) {
  const getSeen = createPeriod(clock, MINUTE_MS, () => new Set<string>());
  const getCounts = createPeriod(clock, HOUR_MS, () => new Map<string, number>());
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn("A failed login could not be noted for the operators' page.", { cause }),
  );

  function note(failure: LoginFailure) {
    const { step, client, ip, error, message } = failure;
    const seen = getSeen();
    const counts = getCounts();
    const key = JSON.stringify([step, client, ip, error]);
    const address = toAddressKey(ip);
    const count = counts.get(address) ?? 0;
    // Skips what was noted in this minute, and all beyond the limits of the minute and of the address.
    if (seen.has(key) || seen.size >= MAX_PER_MINUTE || count >= MAX_PER_ADDRESS_AND_HOUR) return;
    seen.add(key);
    counts.set(address, count + 1);
    const noted: NotedLoginFailure = {
      time: new Date(clock.now()).toISOString(),
      ...failure,
      client: client === undefined ? undefined : cut(stripUrisIn(client)),
      message: cut(stripUrisIn(message)),
    };
    store.addRecent(LOGIN_FAILURES_KEY, JSON.stringify(noted), BOUNDS).catch(warn);
  }

  return {
    note,
    /** Notes a login that succeeded, but whose token is not accepted. */
    noteRefusal({ key, message }: GatewayError, { clientIp: ip }: AuthRequest) {
      if (OF_SIGNED_TOKENS.has(key))
        note({ step: 'call', client: undefined, ip, error: key, message });
    },
    /** The last one first. */
    async list(): Promise<readonly NotedLoginFailure[]> {
      const recent = await store.readRecent(LOGIN_FAILURES_KEY);
      return recent.map((text): unknown => parseObject(text)).filter(isNoted);
    },
  };
}

/** Reasons to refuse a token that its provider did sign: anybody can make up other tokens. */
const OF_SIGNED_TOKENS = new Set(['invalid_audience', 'invalid_issuer', 'missing_claim']);

/** A value that is created anew once its period is over. */
function createPeriod<Value>(clock: Clock, ms: number, create: () => Value) {
  let value = create();
  let until = Number.NEGATIVE_INFINITY;

  return () => {
    const now = clock.monotonic();
    if (now >= until) {
      value = create();
      until = now + ms;
    }
    return value;
  };
}

/** Checks a stored text of this code; a later version may have added members. */
const isNoted = (value: unknown): value is NotedLoginFailure =>
  isObject(value) && ['time', 'step', 'ip', 'error', 'message'].every((name) => name in value);

const cut = (text: string) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
