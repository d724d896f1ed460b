// One client through the steps that need no person. What counts is what reached the gateway.
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Evidence,
  hasAsked,
  hasCalled,
  hasListed,
  hasRefreshed,
  isLoggedIn,
  isRegistration,
  isTokenAnswer,
  withoutNewLogin,
} from './evidence.ts';
import type { Exchange } from './recorder.ts';
import { type CommandEnd, runCommand } from './run-command.ts';
import type { TrialService } from './service.ts';

/** Steps that a client does not support are left out. */
export interface Commands {
  /** Before the login: adds the gateway. */
  readonly add?: readonly string[];
  /** Where there is none, `list` logs in. */
  readonly logIn?: readonly string[];
  readonly list: readonly string[];
  readonly call?: readonly string[];
  /** Calls, prints READY, waits for a line, and calls again over the same connection. */
  readonly hold?: readonly string[];
  /** Ends what it left running. */
  readonly finish?: readonly string[];
}

/** `yes`, `no: why`, or `-` where the client has no command for it. */
export interface Row {
  readonly protocol: string;
  readonly logIn: string;
  readonly list: string;
  readonly call: string;
  /** After a restart of the gateway. */
  readonly restart: string;
  /** After the access token has expired. */
  readonly refresh: string;
  /** Restart and expiry in the midst of one connection. */
  readonly hold: string;
}

export interface Stage {
  readonly service: TrialService;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Puts addresses in the place of their names. */
  readonly fill: (text: string) => string;
  /** For each command but `hold`. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
  readonly debug: (text: string) => void;
}

const HOLD_LIMIT_MS = 120_000;
/** Ends everything that was started, even if interrupted. */
const NEVER = new AbortController().signal;

export async function tryClient(commands: Commands, stage: Stage): Promise<Row> {
  try {
    return await runSteps(commands, stage);
  } finally {
    const { cwd, env, fill, limitMs } = stage;
    const { finish } = commands;
    if (finish) await runCommand(finish.map(fill), { cwd, env, limitMs, signal: NEVER });
  }
}

async function runSteps(commands: Commands, stage: Stage): Promise<Row> {
  const { service, signal } = stage;
  const since = service.exchanges.length;
  const { add, logIn, list, call = list, hold } = commands;
  if (add !== undefined) await run(add);

  const loggedIn = logIn && (await step(logIn, isLoggedIn));
  const listed = await step(
    list,
    loggedIn ? hasListed : (seen) => hasListed(seen) && isLoggedIn(seen),
  );
  const isIn = (loggedIn ?? listed) === 'yes';
  const hasWorked = commands.call === undefined ? hasListed : hasCalled;

  const called = commands.call && (await step(commands.call, withoutNewLogin(hasCalled)));
  await service.restart();
  const restarted = await step(call, withoutNewLogin(hasWorked));
  await waitUntilExpired();
  const refreshed = await step(call, withoutNewLogin(hasWorked, hasRefreshed));
  // Where a kept login cannot be refreshed, this begins with a new one.
  if (hold && refreshed !== 'yes') await waitUntilExpired();
  const held =
    hold && (await step(hold, withoutNewLogin(hasCalled, hasRefreshed), restartAndExpire));

  const exchanges = service.exchanges.slice(since);
  return {
    protocol: exchanges.findLast(({ protocolVersion }) => protocolVersion)?.protocolVersion ?? '-',
    logIn: isIn
      ? `yes (${exchanges.some(isRegistration) ? 'DCR' : 'no registration'})`
      : (loggedIn ?? listed),
    list: listed,
    call: called ?? '-',
    restart: restarted,
    refresh: refreshed,
    hold: held ?? '-',
  };

  /** Requests made when a command becomes ready belong to the previous step, and are not judged. */
  async function step(
    command: readonly string[],
    worked: Evidence,
    whenReady?: () => Promise<void>,
  ) {
    let from = service.exchanges.length;
    const onReady =
      whenReady &&
      (async () => {
        await whenReady();
        from = service.exchanges.length;
      });
    const end = await run(command, onReady);
    const passed = service.exchanges.slice(from);
    if (worked(passed)) return 'yes';
    return `no: ${explainFailure(passed, end)}`;
  }

  async function run(command: readonly string[], onReady?: () => Promise<void>) {
    const filled = command.map(stage.fill);
    const limitMs = onReady === undefined ? stage.limitMs : HOLD_LIMIT_MS;
    const { cwd, env } = stage;
    const options = { cwd, env, limitMs, signal, ...(onReady && { onReady }) };
    const end = await runCommand(filled, options);
    stage.debug(`$ ${filled.join(' ')}\n${end.output}\n→ ${end.wasCutOff ? 'cut off' : end.code}`);
    return end;
  }

  async function restartAndExpire() {
    await service.restart();
    await waitUntilExpired();
  }

  /** Until the newest access token is no longer good. */
  async function waitUntilExpired() {
    const issued = service.exchanges.findLast(isTokenAnswer)?.at ?? 0;
    const rest = issued + (service.accessTokenTtlSeconds + 1) * 1000 - Date.now();
    if (rest > 0) await pause(rest, undefined, { signal }).catch(() => {});
  }
}

/** The last refusal of the gateway, else the last output of the client. */
function explainFailure(
  seen: readonly Exchange[],
  { output, code, wasCutOff }: CommandEnd,
): string {
  if (hasAsked(seen) && isLoggedIn(seen)) return 'it asked for a new login';
  const refusal = seen.findLast(({ status, path }) => status >= 400 && path !== '/mcp');
  const said = output.trim().split('\n').at(-1)?.trim() ?? '';
  const end = wasCutOff ? 'it did not end' : `it ended with ${code}`;
  const answer = refusal && `${refusal.path} answered ${refusal.status}; `;
  return `${answer ?? ''}${end}; ${said.slice(0, 200)}`;
}
