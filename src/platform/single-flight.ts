// One does the work for all who want the same thing at the same time, and all get its outcome.
import type { CancelSignal } from './cancellation.ts';
import type { Clock } from './clock.ts';

export function createSingleFlight<Key, Value>() {
  const underWay = new Map<Key, Promise<Value>>();
  return {
    /** Begins `work`, unless it is under way for this key. */
    run(key: Key, work: () => Promise<Value>): Promise<Value> {
      const known = underWay.get(key);
      if (known !== undefined) return known;
      const started = work().finally(() => underWay.delete(key));
      underWay.set(key, started);
      return started;
    },
    /** The work that is under way. */
    find: (key: Key) => underWay.get(key),
    count: () => underWay.size,
  };
}

// Waits for what another request, here or at another replica, decides.

interface Waiting<Outcome> {
  /** Undefined while there is none. What rejects is asked again: a store that fails now may answer with the next look. */
  look(): Promise<Outcome | undefined>;
  /** Calls back when there may be one; returns what ends it. */
  listen(check: () => void): () => void;
  /** The outcome of a wait that took too long, or that nobody waits for any more. */
  readonly late: Outcome;
  /** At most. */
  readonly waitMs: number;
  readonly signal: CancelSignal;
  readonly clock: Clock;
}

/** Messages between replicas may be lost. */
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

// Messages that wait, in their order, for what decides whether they may be passed on. It is asked for when a message
// comes, and once a second at most.

const FRESH_MS = 1_000;
/** The most that waits, as JSON; messages beyond it are dropped. */
const MAX_WAITING_CHARACTERS = 131_072;

interface Lesson<Known> {
  readonly askedAt: number;
  /** Nothing where it could not be learnt. */
  readonly learnt: readonly Known[];
}

export function createPassWhenKnown<Message, Known>(options: {
  readonly clock: Clock;
  /** If it rejects, messages are dropped until it is due again. */
  learn(): Promise<Known>;
  /** True if what was learnt less than a second ago still holds; without it, it does. */
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
