// Patterns of rules that fit nothing: most are misspelled, or of a server that could not be asked.
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';
import { compileMay, parsePattern } from '../../policy/rules/may.ts';
import type { RuledItem } from '../../policy/rules/rules.ts';

/** One line for each. Resources are left out: not all that can be read are listed. */
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
