// What postern dev says once it serves: all of it at first, then what has changed.
import { isObject } from '../../platform/json.ts';
import { escapeInvisible } from '../../platform/visible-json.ts';
import { type Banner, renderBanner, renderFacts, renderShortBanner } from '../serve/dev-banner.ts';

/** From postern dev to the process that watches its files, or straight to its terminal. */
export interface Announcement extends Banner {
  readonly kind: 'announcement';
  /** How much is served, and what was kept. */
  readonly summary: string;
  /** The changed files that were loaded while it ran, none where somebody asked for that; undefined after a start. */
  readonly loaded: readonly string[] | undefined;
}

/** One more line. */
export interface Note {
  readonly kind: 'note';
  readonly text: string;
}

/** It comes from our own code in another process. */
export const isAnnouncement = (message: unknown): message is Announcement =>
  isObject(message) && message.kind === 'announcement';

/** As `isAnnouncement`. */
export const isNote = (message: unknown): message is Note =>
  isObject(message) && message.kind === 'note';

export interface Announcer {
  /** `changedFiles`: why it was started again, where it was. */
  announce(announcement: Announcement, changedFiles: readonly string[]): void;
  note(note: Note): void;
  /** What clients are given, where the banner left it out. */
  printHints(): void;
}

/** `hasKeys` says that the user can ask for the rest by keys. */
export function createAnnouncer(write: (text: string) => void, hasKeys = false): Announcer {
  // Names of files and what these say may be another's: nothing of them moves the cursor of a terminal.
  const print = (text: string) => write(escapeInvisible(text));
  let told: Announcement | undefined;

  return {
    announce(announcement, changedFiles) {
      const { facts, summary, loaded } = announcement;
      if (told === undefined) {
        print(hasKeys ? renderShortBanner(announcement) : renderBanner(announcement));
      } else {
        const files = loaded ?? changedFiles;
        const why = files.length === 0 ? '' : `: ${files.join(', ')} changed`;
        const known = told.facts.map((fact) => renderFacts([fact]));
        const changed = facts.filter((fact) => !known.includes(renderFacts([fact])));
        print(`Reloaded${why}. ${summary}.\n${renderFacts(changed)}`.trimEnd());
      }
      told = announcement;
    },
    note: ({ text }) => print(text),
    printHints() {
      if (told !== undefined) print(`\n${told.hints}`);
    },
  };
}
