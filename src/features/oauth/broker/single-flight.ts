// One of many that ask the same at the same moment does the work, on whatever replica; the others
// get its answer, and so do those who ask again within a few seconds.
import type { Clock } from '../../../core/clock.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import { hashOf } from '../../../core/seal/seal.ts';
import { oauthKey } from '../../../core/store/keys.ts';
import type { RecordsDeps } from '../sealed-records.ts';

export type SingleFlight = <Result>(
  name: string,
  work: () => Promise<Result>,
  /** Whether an answer is worth keeping: the next one may do better than a passing failure. */
  isFinal: (result: Result) => boolean,
) => Promise<Result>;

/** Longer than the work may take: who holds it for longer has died. */
const FLIGHT_SECONDS = 15;
/** Clients that lost an answer, or raced themselves, come again within this time. */
const ANSWER_SECONDS = 10;
const POLL_MS = 50;

/** `name` is a secret of the asker; answers are plain data, sealed while they lie in the store. */
export function createSingleFlight({ store, seal }: RecordsDeps, clock: Clock): SingleFlight {
  const pause = () => new Promise<void>((resolve) => void clock.after(POLL_MS, resolve));

  return async function once<Result>(
    name: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
    const flight = oauthKey('flight', hashOf(name));
    const answer = oauthKey('answer', hashOf(name));

    async function landed(): Promise<{ readonly result: Result } | undefined> {
      const sealed = await store.get(answer);
      const text = sealed === undefined ? undefined : seal.open(answer, sealed);
      return text === undefined ? undefined : { result: JSON.parse(text) as Result };
    }

    async function fly(): Promise<Result> {
      try {
        const result = await work();
        if (!isFinal(result)) return result;
        const sealed = seal.seal(answer, JSON.stringify(result));
        // What was gained must reach its asker, whatever becomes of the store now.
        await store.set(answer, sealed, ANSWER_SECONDS).catch(() => {});
        return result;
      } finally {
        await store.delete(flight).catch(() => {});
      }
    }

    const deadline = clock.monotonic() + FLIGHT_SECONDS * 1000;
    while (clock.monotonic() < deadline) {
      const found = await landed();
      if (found !== undefined) return found.result;
      if (await store.add(flight, '1', FLIGHT_SECONDS)) {
        // It may have landed between the two questions.
        const late = await landed();
        if (late === undefined) return fly();
        await store.delete(flight);
        return late.result;
      }
      await pause();
    }
    return fail('upstream_failed', { details: 'Another refresh of this token does not end.' });
  };
}
