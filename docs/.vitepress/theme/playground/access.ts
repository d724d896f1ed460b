// The tokens of this tab: in memory only, and renewed shortly before they end.
import { TokenRefused, type Tokens } from './tokens.ts';

export interface Access {
  /** Those of a login, or none. */
  set(tokens: Tokens | undefined): void;
  /** What a request is sent with; a token that is about to end is renewed first. */
  getToken(): Promise<string | undefined>;
  /** After a refusal of `token`: whether there is another one now. */
  replace(token: string): Promise<boolean>;
  getRefreshToken(): string | undefined;
}

/** What people see of it. Epoch milliseconds. */
export interface AccessTimes {
  readonly endsAt: number | undefined;
  /** Undefined where the token is not renewed. */
  readonly renewsAt: number | undefined;
}

export interface AccessDeps {
  /** @throws TokenRefused where there will be none any more, Error where another try may succeed. */
  renew(refreshToken: string): Promise<Tokens>;
  noteTimes(times: AccessTimes): void;
  /** The token could not be renewed. */
  noteFailure(reason: string): void;
  /** The token has ended, and there is no other. */
  noteEnd(): void;
}

const MARGIN_MS = 60_000;
const RETRY_MS = 15_000;
/** Longer ones begin at once (HTML, timers). */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function createAccess({ renew, noteTimes, noteFailure, noteEnd }: AccessDeps): Access {
  let tokens: Tokens | undefined;
  let renewsAt: number | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let renewal: Promise<void> | undefined;

  function set(next: Tokens | undefined): void {
    tokens = next;
    renewal = undefined;
    renewsAt = next && computeRenewal(next);
    schedule();
  }

  /** Wakes up when there is something to do. */
  function schedule(): void {
    clearTimeout(timer);
    noteTimes({ endsAt: tokens?.expiresAt, renewsAt });
    const at = renewsAt ?? tokens?.expiresAt;
    if (at === undefined) return;
    timer = setTimeout(wake, Math.min(Math.max(at - Date.now(), 0), MAX_TIMER_MS));
  }

  function wake(): void {
    if (isDue()) renewOnce();
    else if (tokens !== undefined && hasEnded(tokens)) noteEnd();
    else schedule();
  }

  const isDue = () => renewsAt !== undefined && Date.now() >= renewsAt;

  /** All who need the new token wait for the same request. */
  function renewOnce(): Promise<void> {
    const old = tokens;
    if (old?.refreshToken === undefined) return Promise.resolve();
    const { refreshToken } = old;
    renewal ??= renew(refreshToken).then(
      (renewed) => {
        if (tokens === old) set(renewed);
      },
      (error: unknown) => {
        if (tokens === old) keepOld(old, error);
      },
    );
    return renewal;
  }

  function keepOld(old: Tokens, error: unknown): void {
    renewal = undefined;
    noteFailure(error instanceof Error ? error.message : String(error));
    if (error instanceof TokenRefused) {
      set({ ...old, refreshToken: undefined });
      return;
    }
    // Once it has ended, whoever needs it next tries again.
    const isOver = hasEnded(old);
    renewsAt = isOver ? 0 : Date.now() + RETRY_MS;
    if (isOver) noteEnd();
    else schedule();
  }

  return {
    set,
    async getToken() {
      if (isDue()) await renewOnce();
      return tokens?.accessToken;
    },
    async replace(token) {
      if (tokens?.accessToken === token) await renewOnce();
      return tokens !== undefined && tokens.accessToken !== token;
    },
    getRefreshToken: () => tokens?.refreshToken,
  };
}

const hasEnded = ({ expiresAt }: Tokens): boolean =>
  expiresAt !== undefined && Date.now() >= expiresAt;

/** A minute before its end; the last quarter of a short life. */
function computeRenewal({ expiresAt, refreshToken }: Tokens): number | undefined {
  if (expiresAt === undefined || refreshToken === undefined) return undefined;
  return expiresAt - Math.min(MARGIN_MS, (expiresAt - Date.now()) / 4);
}
