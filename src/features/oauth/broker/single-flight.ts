// One of many that ask the same at the same moment does the work, on whatever replica; the others
// get its answer, and so do those who ask again within a few seconds.
import type { Clock } from '../../../core/clock.ts';
import { fail, GatewayError } from '../../../core/errors/gateway-error.ts';
import { generateSecret } from '../../../core/ids.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import { oauthKey } from '../../../core/store/keys.ts';
import { checkRecordVersion, RECORD_VERSION } from '../../../core/store/record-version.ts';
import type { RecordsDeps } from '../sealed-records.ts';

export type SingleFlight<Result> = (
  name: string,
  work: () => Promise<Result>,
  /** Whether an answer is worth keeping: the next one may do better than a passing failure. */
  isFinal: (result: Result) => boolean,
) => Promise<Result>;

/** Longer than the work may take: who holds it for longer has died. */
const FLIGHT_SECONDS = 30;
/** Clients that lost an answer, or raced themselves, come again within this time. */
const ANSWER_SECONDS = 10;
/** After a failure of unknown outcome: those who waited must not send the same again at once. */
const FAILURE_SECONDS = 2;
const POLL_MS = 50;

const NOT_ASKED = 'The provider could not be asked. Try again.';

function readRecord<Result>(text: string): Landed<Result> {
  const record = JSON.parse(text) as Landed<Result> & { readonly version?: number };
  checkRecordVersion(record.version, 'The answer to a refresh');
  return record;
}

type Landed<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

/** `name` is a secret of the asker; answers are plain data, sealed while they lie in the store. */
export function createSingleFlight<Result>(
  { store, seal }: RecordsDeps,
  clock: Clock,
): SingleFlight<Result> {
  const pause = () => new Promise<void>((resolve) => void clock.after(POLL_MS, resolve));
  /** Of this process: of many that wait for the same, one asks the store how far it is. */
  const running = new Map<string, Promise<Result>>();

  return function once(name, work, isFinal) {
    const hash = hashSha256(name);
    const known = running.get(hash);
    if (known !== undefined) return known;
    const begun = onceOfAll(hash, work, isFinal).finally(() => running.delete(hash));
    running.set(hash, begun);
    return begun;
  };

  async function onceOfAll(
    hash: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
    const flight = oauthKey('flight', hash);
    const answer = oauthKey('answer', hash);

    async function landed(): Promise<Landed<Result> | undefined> {
      const sealed = await store.get(answer);
      const text = sealed === undefined ? undefined : seal.open(answer, sealed);
      return text === undefined ? undefined : readRecord<Result>(text);
    }

    /** What was gained must reach its asker, whatever becomes of the store now. */
    const keep = (outcome: Landed<Result>, seconds: number) =>
      store
        .set(
          answer,
          seal.seal(answer, JSON.stringify({ ...outcome, version: RECORD_VERSION })),
          seconds,
        )
        .catch(() => {});

    async function fly(own: string): Promise<Result> {
      try {
        const result = await work();
        if (isFinal(result)) await keep({ result }, ANSWER_SECONDS);
        return result;
      } catch (error) {
        const details = error instanceof GatewayError ? { details: error.message } : {};
        await keep({ failed: true, ...details }, FAILURE_SECONDS);
        throw error;
      } finally {
        await land(own).catch(() => {});
      }
    }

    /** Only one's own flight: this one may have taken so long that another has begun. */
    async function land(own: string): Promise<void> {
      if ((await store.get(flight)) === own) await store.delete(flight);
    }

    function read(outcome: Landed<Result>): Result {
      return 'failed' in outcome
        ? fail('upstream_failed', { details: outcome.details ?? NOT_ASKED })
        : outcome.result;
    }

    const own = generateSecret();
    const deadline = clock.monotonic() + FLIGHT_SECONDS * 1000;
    while (clock.monotonic() < deadline) {
      const found = await landed();
      if (found !== undefined) return read(found);
      if (await store.setIfAbsent(flight, own, FLIGHT_SECONDS)) {
        // It may have landed between the two questions.
        const late = await landed();
        if (late === undefined) return fly(own);
        await land(own);
        return read(late);
      }
      await pause();
    }
    return fail('upstream_failed', { details: 'Another refresh of this token does not end.' });
  }
}
