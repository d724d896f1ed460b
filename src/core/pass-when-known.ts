// Messages that wait, in their order, for what decides whether they may be passed on. It is asked for when a message
// comes, and once a second at most.
import type { Clock } from './clock.ts';

export interface PassWhenKnownOptions<Message, Known> {
  readonly clock: Clock;
  /** Where it rejects, the messages that wait are dropped. */
  learn(): Promise<Known>;
  /** Whether what was learnt less than a second ago still holds; without it, it does. */
  holds?(known: Known): boolean;
  pass(message: Message, known: Known): void;
}

const FRESH_MS = 1_000;
/** Of messages that wait, as JSON; what is more is dropped. */
const MAX_WAITING_CHARACTERS = 131_072;

export function createPassWhenKnown<Message, Known>(
  options: PassWhenKnownOptions<Message, Known>,
): (message: Message) => void {
  const { clock, learn, holds = () => true, pass } = options;
  let last: { readonly known: Known; readonly askedAt: number } | undefined;
  let waiting: Message[] = [];
  let waitingCharacters = 0;
  let isLearning = false;

  function wait(message: Message): void {
    const { length } = JSON.stringify(message);
    if (waitingCharacters + length > MAX_WAITING_CHARACTERS) return;
    waitingCharacters += length;
    waiting.push(message);
  }

  async function learnForWaiting(): Promise<void> {
    isLearning = true;
    const askedAt = clock.monotonic();
    try {
      const known = await learn();
      last = { known, askedAt };
      if (holds(known)) for (const message of waiting) pass(message, known);
    } catch {
      last = undefined;
    } finally {
      waiting = [];
      waitingCharacters = 0;
      isLearning = false;
    }
  }

  return function passWhenKnown(message) {
    const isFresh = last !== undefined && clock.monotonic() - last.askedAt < FRESH_MS;
    if (!isLearning && isFresh && last !== undefined && holds(last.known)) {
      pass(message, last.known);
      return;
    }
    wait(message);
    if (!isLearning) void learnForWaiting();
  };
}
