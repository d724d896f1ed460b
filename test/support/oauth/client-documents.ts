// The client documents of the service, with a host for `client.example` and further names.
import { createClientDocuments } from '../../../src/logins/client-id-metadata/client-documents.ts';
import type { RedirectUriRules } from '../../../src/logins/redirect-uri.ts';
import type { Network } from '../../../src/platform/outbound/public-network.ts';
import { type ManualClock, manualClock } from '../gateway/clock.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';
import { startDocumentHost } from './document-host.ts';

/** The features' client documents, with a host for `client.example` and further names. */
export async function startClientDocuments(
  allowedHosts: readonly string[] = ['client.example'],
  names: readonly string[] = ['client.example'],
) {
  const host = await startDocumentHost({ names });
  const clock: ManualClock = manualClock(1_800_000_000_000);
  const { log, lines } = collectLog();
  const open = (network: Network = host.network, hosts = allowedHosts) =>
    createClientDocuments({ clock, log }, network, {
      allowedHosts: hosts,
      redirectUris,
      acceptsKeys: false,
    });
  return {
    host,
    clock,
    lines: lines as readonly LogLine[],
    open,
    documents: open(),
    close: host.close,
  };
}

/** What they allow is tested with registration. */
export const redirectUris: RedirectUriRules = {
  baseUrl: 'https://gw.example',
  schemes: [],
  isBroker: false,
};
