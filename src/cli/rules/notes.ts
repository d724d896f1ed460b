// What `postern rules test` says of no single item.
import { builtInCatalog } from '../../catalog/index.ts';
import type { GatewayFile } from '../../config/file/gateway-file.ts';
import type { UserContext } from '../../endpoint/user-context.ts';
import { listTools } from '../../mcp/catalog/list-tools.ts';
import { serveOwnCatalog } from '../../mcp/catalog/served-catalog.ts';
import { findNearestName } from '../../platform/nearest-name.ts';
import { compileMay, parsePattern } from '../../policy/rules/may.ts';
import type { RuledItem } from '../../policy/rules/rules.ts';
import { createNaming } from '../../upstreams/catalog/prepare-list.ts';
import { findLockPath, readLockFile } from '../setup/lock-file-on-disk.ts';
import type { JudgedItem } from './render-items.ts';

/** A line for each tool that is refused, and whose name is like one that is written down. No server is asked. */
export async function suggestNames(
  judged: readonly JudgedItem[],
  path: string,
  file: GatewayFile,
): Promise<readonly string[]> {
  const refused = judged.flatMap(({ item, decision }) =>
    item.kind === 'tool' && decision.kind === 'denied' ? [item.name] : [],
  );
  if (refused.length === 0) return [];
  const known = await listKnownTools(path, file);
  return refused.flatMap((name) => {
    const nearest = known.includes(name) ? undefined : findNearestName(name, known);
    return nearest === undefined
      ? []
      : [`Did you mean ${nearest}? No rule and no lock names ${name}, and no server was asked.`];
  });
}

/** The gateway's own, those that the lock has, and those that rules name without an asterisk. */
async function listKnownTools(path: string, file: GatewayFile): Promise<readonly string[]> {
  const ownTools = file.builtIn === false ? [] : await listTools(serveOwnCatalog(builtInCatalog));
  const { join } = createNaming(file);
  const lock = readLockFile(findLockPath(path));
  const locked = file.servers.flatMap((server) =>
    [...(lock?.servers.get(server.name)?.tools.keys() ?? [])].map((name) => join(server, name)),
  );
  const ruled = file.rules.flatMap(({ may }) =>
    may
      .map(parsePattern)
      .flatMap(({ kind, glob }) => (kind === 'tool' && !glob.includes('*') ? [glob] : [])),
  );
  return [...ownTools.map(({ name }) => String(name)), ...locked, ...ruled];
}

/**
 * Why rules that name an e-mail address do not hold: of all claims, this one may be there and yet be withheld (§2.3). One
 * line, or none where no rule asks, or all is there.
 */
export function findMissingEmail({ rules }: GatewayFile, user: UserContext): readonly string[] {
  const whens = rules.map(({ when = '' }) => when);
  const namesAddress =
    whens.some((when) => /\bemail\b/.test(when)) ||
    rules.some(({ who }) => who !== 'everyone' && who.claims?.email !== undefined);
  const namesVerified = whens.some((when) => /\bemail_verified\b/.test(when));
  if (user.email === undefined) {
    const what =
      user.claims.email === undefined ? 'have no "email"' : 'have an "email" that is not text';
    return namesAddress || namesVerified
      ? [`The claims ${what}, so rules see neither user.email nor user.email_verified.`]
      : [];
  }
  if (user.emailVerified === false)
    return namesAddress || namesVerified
      ? [
          `The claims do not say that the address is verified (${describeClaim(user)}), so rules see no user.email.`,
        ]
      : [];
  return user.emailVerified === undefined && namesVerified
    ? [
        'The claims do not say whether the address is verified (no "email_verified", nor "xms_edov" of Microsoft Entra), so rules see user.email, but no user.email_verified.',
      ]
    : [];
}

function describeClaim({ claims }: UserContext): string {
  const name = claims.email_verified === undefined ? 'xms_edov' : 'email_verified';
  return `"${name}" is ${JSON.stringify(claims[name])}`;
}

/**
 * Patterns of rules that fit nothing: most are misspelled, or of a server that could not be asked. Resources are left out:
 * not all that can be read are listed.
 */
export function findIdlePatterns(
  { rules }: GatewayFile,
  items: readonly RuledItem[],
): readonly string[] {
  return rules.flatMap(({ may, place }) =>
    may
      .filter((pattern) => parsePattern(pattern).kind !== 'resource')
      .filter((pattern) => {
        const mayUse = compileMay([pattern]);
        return !items.some(({ kind, name }) => mayUse(kind, name));
      })
      .map((pattern) => `${JSON.stringify(pattern)} fits nothing that is there: ${place}`),
  );
}
