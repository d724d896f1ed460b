// Decides whether the metadata offers client documents. A client that sees the offer may have no other way to log in, so it is made
// only while documents can be fetched.

import { setMaxListeners } from 'node:events';
import { rejectOnAbort } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import { type ClockAndLog, describeCause } from '../../platform/log.ts';
import {
  HostNotPublic,
  type Network,
  openPublicConnection,
} from '../../platform/outbound/public-network.ts';

interface DocumentOffer {
  /**
   * Waits for the first check, up to 5 s: clients cache the metadata for minutes, and a guess would be wrong for some of them.
   */
  isOffered(): Promise<boolean>;
  /** Starts the checks in the background. */
  start(): void;
  close(): void;
}

const EVERY_MS = 600_000;
const TIMEOUT_MS = 5000;

/** Offers documents if hosts are allowed, without checking whether they can be reached. */
export const createUncheckedOffer = (allowedHosts: readonly string[]): DocumentOffer => ({
  isOffered: async () => allowedHosts.length > 0,
  start() {},
  close() {},
});

export function createDocumentOffer(
  { clock, log }: ClockAndLog,
  network: Network,
  allowedHosts: readonly string[],
): DocumentOffer {
  // `*` names no host to try.
  if (allowedHosts.length === 0 || allowedHosts.includes('*'))
    return createUncheckedOffer(allowedHosts);
  const closing = new AbortController();
  let cancelNext = () => {};
  let endFirst = () => {};
  const first = new Promise<void>((resolve) => (endFirst = resolve));
  let isReachable: boolean | undefined;

  async function check() {
    const failures = await probeHosts(allowedHosts, network, clock, closing.signal);
    if (!closing.signal.aborted) {
      if (failures !== undefined && isReachable !== false)
        log.warn(
          'None of the hosts in CIMD_ALLOWED_HOSTS can be reached, so clients are not told that they can log in with a metadata document (client_id_metadata_document_supported); they have to register. Let the gateway reach the hosts on port 443, set HTTPS_PROXY if a proxy is required, or set CIMD_ALLOWED_HOSTS=none.',
          { reasons: failures },
        );
      if (failures === undefined && isReachable === false)
        log.info(
          'Hosts in CIMD_ALLOWED_HOSTS can be reached again: clients can log in with a metadata document.',
        );
      isReachable = failures === undefined;
      cancelNext = clock.after(EVERY_MS, () => void check());
    }
    endFirst();
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

/** Says by host why it cannot be reached; undefined as soon as one host was reached. */
async function probeHosts(
  hosts: readonly string[],
  network: Network,
  clock: Clock,
  closing: AbortSignal,
) {
  const abort = new AbortController();
  const { signal } = abort;
  // Each host adds listeners. Node.js would take more than ten for a leak.
  setMaxListeners(0, signal);
  const tooLate = new Error(`no TLS connection within ${TIMEOUT_MS / 1000} s`);
  const cancel = clock.after(TIMEOUT_MS, () => abort.abort(tooLate));
  const onClose = () => abort.abort();
  closing.addEventListener('abort', onClose);
  try {
    await Promise.any(
      hosts.map((host) =>
        Promise.race([
          openPublicConnection(host, HTTPS_PORT, network, signal),
          rejectOnAbort(signal),
        ]),
      ),
    );
    return undefined;
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors : [];
    return Object.fromEntries(hosts.map((host, at) => [host, describeReason(reasons[at])]));
  } finally {
    cancel();
    closing.removeEventListener('abort', onClose);
    // Closes open connections.
    abort.abort();
  }
}

/** Refusals are deliberately vague for clients; their cause is exact. */
const describeReason = (error: unknown) =>
  describeCause(error instanceof HostNotPublic ? (error.cause ?? error) : error);

const HTTPS_PORT = 443;
