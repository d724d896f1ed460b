// §22.4: the last log-ins that failed, on whatever replica, for operators.
import type { Clock } from '../../core/clock.ts';
import { isObject, parseObject } from '../../core/json.ts';
import type { Log } from '../../core/log.ts';
import { createWarnThrottle } from '../../core/log-throttle.ts';
import { LOGIN_FAILURES_KEY } from '../../core/store/keys.ts';
import type { Store } from '../../core/store/store.ts';

/** Never a token, a code or a secret. */
export interface LoginFailure {
  /** Where the log-in ended. */
  readonly step: LoginStep;
  /** OAuth client ID, as it was sent. */
  readonly client: string | undefined;
  readonly ip: string;
  /** A key of the error catalogue, or what the log calls a refusal by provider or user. */
  readonly error: string;
  /** What went wrong, as the caller or the log was told. */
  readonly message: string;
}

/** `call`: a token was handed out, but the gateway does not accept it. */
export type LoginStep = 'register' | 'authorize' | 'consent' | 'callback' | 'token' | 'call';

export interface NotedLoginFailure extends LoginFailure {
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

export interface LoginFailuresDeps {
  readonly store: Pick<Store, 'addRecent' | 'readRecent'>;
  readonly clock: Clock;
  readonly log: Log;
}

const BOUNDS = { max: 100, ttlSeconds: 7 * 86_400 };
/** Of each process: whoever fails on purpose must not write without end. */
const MAX_PER_MINUTE = 30;
const MINUTE_MS = 60_000;
const MAX_TEXT = 500;

export function createLoginFailures({ store, clock, log }: LoginFailuresDeps): LoginFailures {
  const isNews = createNewsFilter(clock);
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn("A failed log-in could not be noted for the operators' page.", { cause }),
  );

  return {
    note(failure) {
      const { step, client, ip, error } = failure;
      if (!isNews(JSON.stringify([step, client, ip, error]))) return;
      const noted: NotedLoginFailure = {
        time: new Date(clock.now()).toISOString(),
        ...failure,
        client: client === undefined ? undefined : cut(client),
        message: cut(failure.message),
      };
      store.addRecent(LOGIN_FAILURES_KEY, JSON.stringify(noted), BOUNDS).catch(warn);
    },
    async list() {
      const recent = await store.readRecent(LOGIN_FAILURES_KEY);
      return recent.map((text): unknown => parseObject(text)).filter(isNoted);
    },
  };
}

/** False for what was seen in this minute, and for all that is too much of it. */
function createNewsFilter(clock: Clock): (key: string) => boolean {
  const seen = new Set<string>();
  let until = Number.NEGATIVE_INFINITY;

  return function isNews(key) {
    const now = clock.monotonic();
    if (now >= until) {
      seen.clear();
      until = now + MINUTE_MS;
    }
    if (seen.has(key) || seen.size >= MAX_PER_MINUTE) return false;
    seen.add(key);
    return true;
  };
}

/** What this code wrote; a later version may have added members. */
const isNoted = (value: unknown): value is NotedLoginFailure =>
  isObject(value) && ['time', 'step', 'ip', 'error', 'message'].every((name) => name in value);

const cut = (text: string): string =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
