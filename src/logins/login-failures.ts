// §22.4: the last logins that failed, on whatever replica, for operators.
import { toAddressKey } from '../platform/address.ts';
import type { Clock } from '../platform/clock.ts';
import { isObject, parseObject } from '../platform/json.ts';
import { stripUrisIn } from '../platform/strip-uri.ts';
import { createWarnThrottle } from '../platform/throttle.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { LOGIN_FAILURES_KEY } from '../store/keys.ts';

/** Never a token, a code or a secret. */
interface LoginFailure {
  /** The endpoint at which the login ended. */
  readonly step: LoginStep;
  /** OAuth client ID, as it was sent. */
  readonly client: string | undefined;
  readonly ip: string;
  /** A key of the error catalogue, or what the log calls a refusal by provider or user. */
  readonly error: string;
  /** The problem, as the caller or the log was told. */
  readonly message: string;
}

/** `call`: a token was handed out, but the gateway does not accept it. */
export type LoginStep = 'register' | 'authorize' | 'consent' | 'callback' | 'token' | 'call';

interface NotedLoginFailure extends LoginFailure {
  /** ISO 8601, UTC. */
  readonly time: string;
}

/** At once: what it writes, nobody waits for. */
export type NoteLoginFailure = (failure: LoginFailure) => void;

export interface LoginFailures {
  readonly note: NoteLoginFailure;
  /** The last first. */
  list(): Promise<readonly NotedLoginFailure[]>;
}

const BOUNDS = { max: 100, ttlSeconds: 7 * 86_400 };
/** For each process: whoever fails on purpose must not write without end. */
const MAX_PER_MINUTE = 30;
const MINUTE_MS = 60_000;
/** For one address: one stranger must not push all others out of the list. */
const MAX_PER_ADDRESS_AND_HOUR = 20;
const HOUR_MS = 3_600_000;
const MAX_TEXT = 500;

export function createLoginFailures({ store, clock, log }: Runtime): LoginFailures {
  const isNews = createNewsFilter(clock);
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn("A failed login could not be noted for the operators' page.", { cause }),
  );

  return {
    note(failure) {
      if (!isNews(failure)) return;
      const { client, message } = failure;
      const noted: NotedLoginFailure = {
        time: new Date(clock.now()).toISOString(),
        ...failure,
        client: client === undefined ? undefined : cut(stripUrisIn(client)),
        message: cut(stripUrisIn(message)),
      };
      store.addRecent(LOGIN_FAILURES_KEY, JSON.stringify(noted), BOUNDS).catch(warn);
    },
    async list() {
      const recent = await store.readRecent(LOGIN_FAILURES_KEY);
      return recent.map((text): unknown => parseObject(text)).filter(isNoted);
    },
  };
}

/** False for what was seen in this minute, and for all that is too much of it, or of one address. */
function createNewsFilter(clock: Clock): (failure: LoginFailure) => boolean {
  const getSeen = createPeriod(clock, MINUTE_MS, () => new Set<string>());
  const getCounts = createPeriod(clock, HOUR_MS, () => new Map<string, number>());

  return function isNews({ step, client, ip, error }) {
    const seen = getSeen();
    const counts = getCounts();
    const key = JSON.stringify([step, client, ip, error]);
    const address = toAddressKey(ip);
    const count = counts.get(address) ?? 0;
    if (seen.has(key) || seen.size >= MAX_PER_MINUTE || count >= MAX_PER_ADDRESS_AND_HOUR)
      return false;
    seen.add(key);
    counts.set(address, count + 1);
    return true;
  };
}

/** A value that begins anew when the period in which it was made is over. */
function createPeriod<Value>(clock: Clock, ms: number, create: () => Value): () => Value {
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

/** True for what this code wrote; a later version may have added members. */
const isNoted = (value: unknown): value is NotedLoginFailure =>
  isObject(value) && ['time', 'step', 'ip', 'error', 'message'].every((name) => name in value);

const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
