// §18.3: programs that run as the user of the gateway can read what it can.
import type { Config } from '../../../config/config.ts';
import type { UpstreamConfig } from '../../../config/file/gateway-file.ts';
import { isProgram } from './check-program-users.ts';

/** A sentence in production; none elsewhere, where one's own programs are tried. */
export function warnOfOwnUser(
  servers: readonly UpstreamConfig[],
  { server }: Pick<Config, 'server'>,
): readonly string[] {
  const names = servers
    .filter((one) => isProgram(one) && one.runAs === undefined)
    .map(({ name }) => name);
  return names.length === 0 || server.environment !== 'production'
    ? []
    : [
        `Programs that run as the user of the gateway can read its secrets and end it: ${names.join(', ')}. Set RUN_PROGRAMS_AS to another user of the system (Linux), or "runAs" of each server.`,
      ];
}
