// What the gateway itself warns of at start.
import { logStartWarnings } from '../../../core/config/start-log.ts';
import { createCollectingLog } from '../collecting-log.ts';
import { type Finding, ok, warning } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

export async function checkStart({ config }: SettingsAtHand): Promise<readonly Finding[]> {
  const { log, entries } = createCollectingLog();
  logStartWarnings(config, log);
  const warned = entries.filter(({ level }) => level === 'warn');
  const { server, oauth } = config;
  return [
    ok('settings', `The settings are valid: OAUTH_MODE=${oauth.mode}, BASE_URL=${server.baseUrl}.`),
    ...entries
      .filter((entry) => !warned.includes(entry))
      .map(({ message }) => warning('settings.mode', message)),
    ...warned.map(({ message }) => warning('settings.risk', message)),
    ...describePath(server.baseUrl),
  ];
}

function describePath(baseUrl: string): readonly Finding[] {
  const { pathname } = new URL(baseUrl);
  if (pathname === '/') return [];
  return [
    warning('settings.base-url-path', `BASE_URL has a path: ${pathname}.`, {
      why: `The gateway serves its paths from /, so the proxy in front has to remove ${pathname}. Clients also look for metadata at /.well-known/oauth-authorization-server${pathname}, at the start of the host, where the proxy has to lead them to the gateway, too.`,
      setting: 'BASE_URL',
      remedy: 'a host name of its own for the gateway is simpler.',
    }),
  ];
}
