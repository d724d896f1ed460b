// Which server is the primary, as the sentinels say. All of them are asked, each over a connection of
// its own: one that is down or frozen delays nothing.
import { Redis } from 'ioredis';
import {
  formatAddress,
  type SentinelAddress,
  type SentinelUrl,
} from '../../config/sentinel-url.ts';
import type { Clock } from '../../platform/clock.ts';
import { describeCause } from '../../platform/log.ts';
import { endWhenSilent, FAIL_FAST } from './connection.ts';

/** Of the primary. */
export interface PrimaryAddress {
  readonly host: string;
  readonly port: number;
}

export interface SentinelsOptions {
  readonly clock: Clock;
  /** Called with every answer, of which most name the same primary as before. */
  onPrimary(primary: PrimaryAddress): void;
  /** Called as long as no sentinel names a primary, each time that one fails again. */
  onUnknown(cause: Error): void;
}

/** How often each is asked: what passes at most until a fail-over is noticed. */
const ASK_EVERY_MS = 1000;

/** Rises with each fail-over, so a sentinel that missed the last one does not decide. */
interface Answer extends PrimaryAddress {
  readonly epoch: number;
}

/** What a sentinel said last, or why it said nothing; undefined before either. */
type Outcome = { readonly answer: Answer } | { readonly failure: unknown };

/** Asks until the returned function is called. */
export function askSentinels(url: SentinelUrl, options: SentinelsOptions): () => void {
  const { clock, onPrimary, onUnknown } = options;
  const outcomes = new Map<SentinelAddress, Outcome>();
  let isClosed = false;
  const closers = url.sentinels.map((sentinel) =>
    askSentinel(sentinel, url, clock, (outcome) => {
      outcomes.set(sentinel, outcome);
      if (!isClosed) judgeOutcomes();
    }),
  );

  function judgeOutcomes(): void {
    const latest = findLatest(outcomes.values());
    if (latest !== undefined) onPrimary(latest);
    else if (outcomes.size === url.sentinels.length) onUnknown(describeFailures(url, outcomes));
  }

  return () => {
    isClosed = true;
    for (const close of closers) close();
  };
}

function findLatest(outcomes: Iterable<Outcome>): Answer | undefined {
  let latest: Answer | undefined;
  for (const outcome of outcomes) {
    if (!('answer' in outcome)) continue;
    if (latest === undefined || outcome.answer.epoch > latest.epoch) latest = outcome.answer;
  }
  return latest;
}

function askSentinel(
  { host, port }: SentinelAddress,
  { primaryName, sentinelPassword, isTls }: SentinelUrl,
  clock: Clock,
  onOutcome: (outcome: Outcome) => void,
): () => void {
  const client = new Redis({
    ...FAIL_FAST,
    host,
    port,
    enableOfflineQueue: false,
    retryStrategy: () => ASK_EVERY_MS,
    ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    ...(isTls && { tls: {} }),
  });
  endWhenSilent(client);
  let isAsking = false;
  let cancelNext = () => {};

  async function ask(): Promise<void> {
    if (isAsking || client.status !== 'ready') return;
    isAsking = true;
    const outcome = await client
      .call('SENTINEL', 'MASTER', primaryName)
      .then(readAnswer)
      .catch((failure: unknown) => ({ failure }));
    isAsking = false;
    onOutcome(outcome);
  }

  function askRegularly(): void {
    cancelNext = clock.after(ASK_EVERY_MS, () => {
      void ask();
      askRegularly();
    });
  }

  client.on('ready', () => void ask());
  client.on('error', (failure) => onOutcome({ failure }));
  askRegularly();

  return () => {
    cancelNext();
    client.disconnect();
  };
}

/** Names and values alternate. @throws Error for anything else. */
function readAnswer(reply: unknown): Outcome {
  const list = Array.isArray(reply) ? reply.map(String) : [];
  // A value may be the name of another one: a primary may be called "ip".
  const read = (name: string) => list.find((_, at) => at % 2 === 1 && list[at - 1] === name) ?? '';
  const [host, port, epoch] = [read('ip'), Number(read('port')), Number(read('config-epoch'))];
  if (host === '' || !(port > 0 && port < 65_536) || !Number.isInteger(port + epoch))
    throw new Error('SENTINEL MASTER was answered in an unknown form');
  return { answer: { host, port, epoch } };
}

function describeFailures(
  { sentinels, primaryName }: SentinelUrl,
  outcomes: ReadonlyMap<SentinelAddress, Outcome>,
): Error {
  const failures = sentinels.map((sentinel) => {
    const outcome = outcomes.get(sentinel);
    const failure = outcome && 'failure' in outcome ? describeCause(outcome.failure) : '';
    return `${formatAddress(sentinel)}: ${failure}`;
  });
  return new Error(
    `No sentinel names a primary ${JSON.stringify(primaryName)} (${failures.join('; ')})`,
  );
}
