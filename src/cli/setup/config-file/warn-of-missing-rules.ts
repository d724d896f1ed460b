// §18.5: without rules everybody may use everything, and of that nothing can be seen until somebody does.
import type { Config } from '../../../config/config.ts';
import type { GatewayFile } from '../../../config/file/gateway-file.ts';

/** A sentence in production, unless the file says that it is meant. */
export function warnOfMissingRules(
  { servers, rules, meansNoRules }: GatewayFile,
  { auth, server }: Pick<Config, 'auth' | 'server'>,
): readonly string[] {
  const isMeant = rules.length > 0 || meansNoRules;
  if (servers.length === 0 || isMeant || server.environment !== 'production') return [];
  const who = auth.required ? 'Everybody who can log in' : 'Everybody who reaches the gateway';
  const names = servers.map(({ name }) => name).join(', ');
  const shared = servers.flatMap((one) =>
    one.kind === 'stdio' && one.isolation === 'shared' ? [one.name] : [],
  );
  const sharing =
    shared.length === 0
      ? ''
      : ` Of these, all users share one process, which cannot tell them apart: ${shared.join(', ')} ("isolation" changes that).`;
  return [
    `There are no rules. ${who} may use all that these servers offer: ${names}.${sharing} Write who may use what under "rules", or "rules": "everyone" (rules: everyone in YAML) if this is meant.`,
  ];
}
