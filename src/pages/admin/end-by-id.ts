// §22.3: the end of one thing that a list has, by its id.

import type { ErrorKey } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { AdminAct } from '../../http/endpoint/admin-panel.ts';

interface EndedThing {
  /** In the audit log. */
  readonly action: string;
  isId(text: string): boolean;
  /** False when there is nothing of this id. */
  end(id: string): Promise<boolean>;
  readonly notFound: ErrorKey;
}

export const endById = (path: string, { action, isId, end, notFound }: EndedThing): AdminAct => ({
  method: 'DELETE',
  path,
  hasParameter: isId,
  prepare({ request }) {
    const target = request.path.slice(request.path.lastIndexOf('/') + 1);
    return {
      action,
      target,
      async run() {
        if (!(await end(target))) fail(notFound);
        return { status: 204 };
      },
    };
  },
});
