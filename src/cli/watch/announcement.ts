// What postern dev says once it serves: all of it at first, then what has changed.
import { isObject } from '../../core/json.ts';
import { escapeInvisible } from '../../core/visible-json.ts';
import { type Banner, renderBanner, renderFacts } from '../dev-banner.ts';

/** From postern dev to the process that watches its files, or straight to its terminal. */
export interface Announcement extends Banner {
  readonly kind: 'announcement';
  /** How much is served, and what was kept. */
  readonly summary: string;
  /** The file that was loaded anew while it ran; undefined after a start. */
  readonly loaded: string | undefined;
}

/** It comes from our own code in another process. */
export const isAnnouncement = (message: unknown): message is Announcement =>
  isObject(message) && message.kind === 'announcement';

export type Announce = (
  announcement: Announcement,
  /** Why it was started again, where it was. */
  changedFiles: readonly string[],
) => void;

export function createAnnounce(write: (text: string) => void): Announce {
  // Names of files and what these say may be another's: nothing of them moves the cursor of a terminal.
  const print = (text: string) => write(escapeInvisible(text));
  let told: Banner['facts'] | undefined;
  return function announce(announcement, changedFiles) {
    const { facts, summary, loaded } = announcement;
    if (told === undefined) print(renderBanner(announcement));
    else {
      const files = loaded === undefined ? changedFiles : [loaded];
      const known = told.map((fact) => renderFacts([fact]));
      const changed = facts.filter((fact) => !known.includes(renderFacts([fact])));
      print(
        `Reloaded: ${files.join(', ')} changed. ${summary}.\n${renderFacts(changed)}`.trimEnd(),
      );
    }
    told = facts;
  };
}
