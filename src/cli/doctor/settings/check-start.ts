// What the gateway itself warns of at start.
import { logStartWarnings } from '../../../config/start-log.ts';
import { createCollectingLog, type LogEntry } from '../collecting-log.ts';
import { type Finding, ok, warning } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

export async function checkStart({ config }: SettingsAtHand): Promise<readonly Finding[]> {
  const { log, entries } = createCollectingLog();
  logStartWarnings(config, log);
  const { server, oauth } = config;
  return [
    ok('settings', `The settings are valid: OAUTH_MODE=${oauth.mode}, BASE_URL=${server.baseUrl}.`),
    ...entries.map(toFinding),
    ...describePath(server.baseUrl),
  ];
}

/** What is at info may well be intended; each begins with its variable, or with a sentence. */
function toFinding({ level, message }: LogEntry): Finding {
  const [variable] = /^[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/.exec(message) ?? [];
  const check = level === 'warn' ? 'settings.risk' : 'settings.mode';
  return warning(check, message, variable === undefined ? {} : { setting: variable });
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
