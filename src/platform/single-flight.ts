// Single flight: concurrent callers share one execution and its outcome.
import type { CancelSignal } from './cancellation.ts';
import type { Clock } from './clock.ts';

export function createSingleFlight<Key, Value>() {
  const underWay = new Map<Key, Promise<Value>>();
  return {
    /** Runs `work`, or joins the run in progress for this key. */
    run(key: Key, work: () => Promise<Value>): Promise<Value> {
      const known = underWay.get(key);
      if (known !== undefined) return known;
      const started = work().finally(() => underWay.delete(key));
      underWay.set(key, started);
      return started;
    },
    /** The run in progress for this key. */
    find: (key: Key) => underWay.get(key),
    count: () => underWay.size,
  };
}

// Waits for a decision that another request makes, on this replica or another.

interface Waiting<Outcome> {
  /** Reads the decision; undefined while there is none. Called again after a rejection, since the store may recover. */
  look(): Promise<Outcome | undefined>;
  /** Calls `check` when there may be a decision; returns a function that unsubscribes. */
  listen(check: () => void): () => void;
  /** Outcome of a wait that timed out or was cancelled. */
  readonly late: Outcome;
  /** Maximum wait in milliseconds. */
  readonly waitMs: number;
  readonly signal: CancelSignal;
  readonly clock: Clock;
}

/** Poll interval, needed because messages between replicas may be lost. */
const POLL_MS = 2000;

export function waitForOutcome<Outcome>(waiting: Waiting<Outcome>): Promise<Outcome> {
  const { look, late, waitMs, signal, clock } = waiting;
  return new Promise((resolve) => {
    let isOver = false;
    let isLooking = false;
    let hasChanged = false;
    let cancelPoll = () => {};
    const end = (outcome: Outcome) => {
      isOver = true;
      cancelPoll();
      cancelDeadline();
      stopListening();
      signal.removeEventListener('abort', onAbort);
      resolve(outcome);
    };
    const onAbort = () => end(late);
    const cancelDeadline = clock.after(waitMs, () => end(late));
    const stopListening = waiting.listen(() => void check());
    async function check() {
      hasChanged = isLooking;
      if (isLooking) return;
      isLooking = true;
      cancelPoll();
      const outcome = await look().catch(() => undefined);
      isLooking = false;
      if (isOver) return;
      if (outcome !== undefined) end(outcome);
      else if (hasChanged) void check();
      else cancelPoll = clock.after(POLL_MS, () => void check());
    }
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    else void check();
  });
}

// Queues messages, in order, until the data that decides about forwarding them has been loaded. Loads it when a message arrives, at
// most once a second.

const FRESH_MS = 1_000;
/** Maximum queue size as JSON; further messages are dropped. */
const MAX_WAITING_CHARACTERS = 131_072;

interface Lesson<Known> {
  readonly askedAt: number;
  /** The data that was loaded; undefined if loading failed. */
  readonly learnt: readonly Known[];
}

export function createPassWhenKnown<Message, Known>(options: {
  readonly clock: Clock;
  /** Loads the data. If it rejects, messages are dropped until the next attempt is due. */
  learn(): Promise<Known>;
  /** True if data loaded less than a second ago is still valid; if absent, such data is always valid. */
  holds?(known: Known): boolean;
  pass(message: Message, known: Known): void;
}): (message: Message) => void {
  const { clock, learn, holds = () => true, pass } = options;
  let last: Lesson<Known> | undefined;
  let waiting: Message[] = [];
  let waitingCharacters = 0;
  let isLearning = false;

  function wait(message: Message) {
    const { length } = JSON.stringify(message);
    if (waitingCharacters + length > MAX_WAITING_CHARACTERS) return;
    waitingCharacters += length;
    waiting.push(message);
  }

  function passBy({ learnt }: Lesson<Known>, messages: readonly Message[]) {
    for (const known of learnt) {
      for (const message of messages) if (holds(known)) pass(message, known);
    }
  }

  async function learnForWaiting() {
    isLearning = true;
    const askedAt = clock.monotonic();
    const learnt = await learn().then(
      (known) => [known],
      () => [],
    );
    last = { askedAt, learnt };
    const waited = waiting;
    waiting = [];
    waitingCharacters = 0;
    isLearning = false;
    passBy(last, waited);
  }

  const isCurrent = ({ askedAt, learnt }: Lesson<Known>) =>
    clock.monotonic() - askedAt < FRESH_MS && learnt.every(holds);

  return function passWhenKnown(message) {
    if (!isLearning && last !== undefined && isCurrent(last)) {
      passBy(last, [message]);
      return;
    }
    wait(message);
    if (!isLearning) void learnForWaiting();
  };
}
