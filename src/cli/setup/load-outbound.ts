// How requests leave this machine, where there are no settings of a gateway, or those of another one.
import { loadConfig } from '../../config/load.ts';
import type { OutboundConfig } from '../../platform/outbound/proxy-choice.ts';

/** @throws ConfigError */
export function loadOutbound(env: NodeJS.ProcessEnv): OutboundConfig {
  const proxies = Object.entries(env).filter(([name]) => /^(https?|no)_proxy$/i.test(name));
  return loadConfig({ ...Object.fromEntries(proxies), AUTH_REQUIRED: 'false' }).outbound;
}
