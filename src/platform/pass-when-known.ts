// Messages that wait, in their order, for what decides whether they may be passed on. It is asked for when a message
// comes, and once a second at most.
import type { Clock } from './clock.ts';

export interface PassWhenKnownOptions<Message, Known> {
  readonly clock: Clock;
  /** Where it rejects, messages are dropped until it is due again. */
  learn(): Promise<Known>;
  /** Whether what was learnt less than a second ago still holds; without it, it does. */
  holds?(known: Known): boolean;
  pass(message: Message, known: Known): void;
}

const FRESH_MS = 1_000;
/** Of messages that wait, as JSON; what is more is dropped. */
const MAX_WAITING_CHARACTERS = 131_072;

interface Lesson<Known> {
  readonly askedAt: number;
  /** Nothing where it could not be learnt. */
  readonly learnt: readonly Known[];
}

export function createPassWhenKnown<Message, Known>(
  options: PassWhenKnownOptions<Message, Known>,
): (message: Message) => void {
  const { clock, learn, holds = () => true, pass } = options;
  let last: Lesson<Known> | undefined;
  let waiting: Message[] = [];
  let waitingCharacters = 0;
  let isLearning = false;

  function wait(message: Message): void {
    const { length } = JSON.stringify(message);
    if (waitingCharacters + length > MAX_WAITING_CHARACTERS) return;
    waitingCharacters += length;
    waiting.push(message);
  }

  function passBy({ learnt }: Lesson<Known>, messages: readonly Message[]): void {
    for (const known of learnt) {
      for (const message of messages) if (holds(known)) pass(message, known);
    }
  }

  async function learnForWaiting(): Promise<void> {
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

  const isCurrent = ({ askedAt, learnt }: Lesson<Known>): boolean =>
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
