// §5.11: a login ends, whoever says so: here at once, and at the provider as far as that can be told.
import type { Grant } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import type { TellProvider } from './tell-provider.ts';

/** Resolves to what has ended; undefined where another was faster, or there was none. */
export type EndGrant = (id: string) => Promise<Grant | undefined>;

export interface EndGrantDeps {
  readonly grants: Pick<Grants, 'end'>;
  readonly tellProvider: TellProvider;
}

export const createEndGrant = ({ grants, tellProvider }: EndGrantDeps): EndGrant =>
  async function endGrant(id) {
    const ended = await grants.end(id);
    if (ended !== undefined) await tellProvider(ended);
    return ended;
  };
