// Decisions 10: whether the metadata offers client documents. A client that sees the offer may have
// no other way to log in, so it is made only while documents can be fetched.
import type { Clock } from '../../../core/clock.ts';
import { describeCause, type Log } from '../../../core/log.ts';
import type { Network } from './network.ts';
import { openConnection } from './open-connection.ts';
import { ClientDocumentRefused } from './refusal.ts';

export interface DocumentOffer {
  /**
   * Before the first check has ended its outcome is awaited, up to 5 s: clients keep the metadata
   * for minutes, and each of both answers would be wrong for some of them.
   */
  isOffered(): Promise<boolean>;
  /** Begins to check, and to check again in the background. */
  start(): void;
  close(): void;
}

export interface DocumentOfferOptions {
  /** `CIMD_ALLOWED_HOSTS`. */
  readonly hosts: readonly string[];
  readonly network: Network;
  readonly clock: Clock;
  readonly log: Log;
}

const EVERY_MS = 600_000;
const TIMEOUT_MS = 5000;

/** `*` names no host that could be tried. */
export const createDocumentOffer = (options: DocumentOfferOptions): DocumentOffer =>
  options.hosts.length === 0 || options.hosts.includes('*')
    ? uncheckedOffer(options.hosts)
    : checkedOffer(options);

/** Documents are offered where hosts are allowed, whether they can be reached or not. */
export const uncheckedOffer = (hosts: readonly string[]): DocumentOffer => ({
  isOffered: async () => hosts.length > 0,
  start() {},
  close() {},
});

function checkedOffer({ hosts, network, clock, log }: DocumentOfferOptions): DocumentOffer {
  const closing = new AbortController();
  let cancelNext = () => {};
  let noteFirst = () => {};
  const first = new Promise<void>((resolve) => (noteFirst = resolve));
  let isReachable: boolean | undefined;

  async function check(): Promise<void> {
    const failures = await failuresOf(hosts, network, clock, closing.signal);
    if (!closing.signal.aborted) {
      note(failures);
      cancelNext = clock.after(EVERY_MS, () => void check());
    }
    noteFirst();
  }

  function note(failures: Failures | undefined): void {
    if (failures !== undefined && isReachable !== false) {
      log.warn(
        'None of the hosts of CIMD_ALLOWED_HOSTS can be reached, so clients are not offered log-in by a metadata document (client_id_metadata_document_supported); they have to register. Let the gateway reach the hosts on port 443, set HTTPS_PROXY where only a proxy gets out, or set CIMD_ALLOWED_HOSTS=none.',
        { reasons: failures },
      );
    }
    if (failures === undefined && isReachable === false) {
      log.info(
        'Hosts of CIMD_ALLOWED_HOSTS can be reached again: clients may log in by a metadata document.',
      );
    }
    isReachable = failures === undefined;
  }

  return {
    async isOffered() {
      if (isReachable === undefined) await first;
      return isReachable === true;
    },
    start: () => void check(),
    close() {
      cancelNext();
      closing.abort();
    },
  };
}

/** Why a host cannot be reached, by its name. */
type Failures = Readonly<Record<string, string>>;

/** Undefined as soon as one of the hosts was reached. */
async function failuresOf(
  hosts: readonly string[],
  network: Network,
  clock: Clock,
  closing: AbortSignal,
): Promise<Failures | undefined> {
  const attempts = hosts.map((host) => ({ host, abort: new AbortController() }));
  const end = (reason?: Error) => {
    for (const { abort } of attempts) abort.abort(reason);
  };
  const tooLate = new Error(`no TLS connection within ${TIMEOUT_MS / 1000} s`);
  const cancel = clock.after(TIMEOUT_MS, () => end(tooLate));
  const onClose = () => end();
  closing.addEventListener('abort', onClose);
  try {
    await Promise.any(attempts.map(({ host, abort }) => reach(host, network, abort.signal)));
    return undefined;
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors : [];
    return Object.fromEntries(hosts.map((host, at) => [host, reasonOf(reasons[at])]));
  } finally {
    cancel();
    closing.removeEventListener('abort', onClose);
    // Closes whatever is open.
    end();
  }
}

async function reach(host: string, network: Network, signal: AbortSignal): Promise<void> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  await Promise.race([openConnection(host, network, signal), aborted]);
}

/** What is said to clients of a refusal is vague on purpose; its cause is not. */
const reasonOf = (error: unknown): string =>
  describeCause(error instanceof ClientDocumentRefused ? (error.cause ?? error) : error);
