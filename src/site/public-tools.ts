// §19.2: the tools that everybody may see, with SITE_SHOWS_TOOLS=true.
import type { Clock } from '../platform/clock.ts';
import type { JsonObject } from '../platform/json.ts';
import type { Log } from '../platform/log.ts';

export interface PublicTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
}

export interface PublicToolsDeps {
  /** Every tool that somebody who has not logged in may see. */
  listTools(): Promise<readonly JsonObject[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Undefined while they cannot be listed. Never rejects. */
export type GetPublicTools = () => Promise<readonly PublicTool[] | undefined>;

/** Anybody may ask, and servers behind the gateway may have to be asked for it. */
const KEPT_MS = 60_000;

export function createGetPublicTools({ listTools, clock, log }: PublicToolsDeps): GetPublicTools {
  let kept: { readonly tools: ReturnType<GetPublicTools>; readonly until: number } | undefined;

  async function load(): Promise<readonly PublicTool[] | undefined> {
    try {
      return (await listTools()).flatMap(toPublicTool);
    } catch (error) {
      log.warn('The tools for the front page (SITE_SHOWS_TOOLS) cannot be listed.', {
        cause: error,
      });
      return undefined;
    }
  }

  return function getPublicTools() {
    if (kept === undefined || clock.now() >= kept.until) {
      kept = { tools: load(), until: clock.now() + KEPT_MS };
    }
    return kept.tools;
  };
}

/** Its name and what it says of itself: no schema. */
const toPublicTool = ({ name, title, description }: JsonObject): readonly PublicTool[] =>
  typeof name === 'string'
    ? [
        {
          name,
          ...(typeof title === 'string' && { title }),
          ...(typeof description === 'string' && { description }),
        },
      ]
    : [];
