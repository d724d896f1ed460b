// Names of tools that clients would change (docs/clients.md): their models then call what nobody has, or never see it.
import type { GatewayFile, UpstreamConfig } from '../../../config/file/gateway-file.ts';
import { joinPolicies } from '../../../policy/policy.ts';
import type { FetchedList } from '../../../upstreams/catalog/fetch-list.ts';
import { createNaming, createPrepareList } from '../../../upstreams/catalog/prepare-list.ts';
import { type Finding, warning } from '../finding.ts';
import { describeNames } from './describe-names.ts';

const CHECK = 'server.names';
/** What all clients that were tried take, with the name of the gateway that some put in front. */
const SAFE_LENGTH = 48;

/** `tools` is what the server listed. */
export function checkNames(
  file: GatewayFile,
  config: UpstreamConfig,
  tools: FetchedList,
): readonly Finding[] {
  const prepareList = createPrepareList({
    config,
    naming: createNaming(file),
    policies: joinPolicies([]),
    warn: () => {},
  });
  const names = [...prepareList('tools', tools).byName.keys()];
  return [
    ...warnOfNames(config, names.filter(isLong), {
      why: 'Claude Code, OpenCode and Copilot cut longer ones, or refuse them, because they put the name of the gateway in front.',
      remedy: `write "maxNameLength": ${SAFE_LENGTH} at the top of the configuration file, or give ${config.name} a shorter "prefix".`,
      problem: `over ${SAFE_LENGTH} characters`,
    }),
    ...warnOfNames(config, names.filter(isReplaced), {
      why: 'Some clients put another character in the place of a dot, and then call a tool that does not exist.',
      remedy: 'write "names": "strict" at the top of the configuration file.',
      problem: 'with a dot',
    }),
  ];
}

const isLong = (name: string): boolean => name.length > SAFE_LENGTH;
const isReplaced = (name: string): boolean => name.includes('.');

function warnOfNames(
  { name }: UpstreamConfig,
  names: readonly string[],
  { problem, ...advice }: { problem: string; why: string; remedy: string },
): readonly Finding[] {
  if (names.length === 0) return [];
  return [
    warning(CHECK, `Names of tools of ${name} ${problem}: ${describeNames(names)}.`, {
      ...advice,
      setting: 'POSTERN_CONFIG',
    }),
  ];
}
