// What several fixtures ask and answer with.
import type { Content, ElicitAnswer, RootsAnswer, SampleAnswer } from '../../../../src/index.ts';

/** One red pixel. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';

/** A millisecond of silence. */
export const WAV = 'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==';

export const NO_ARGUMENTS = { type: 'object', additionalProperties: false } as const;

/** A form. */
export const CONFIRMATION = {
  type: 'object',
  properties: { ok: { type: 'boolean' } },
  required: ['ok'],
} as const;

export const text = (words: string) => ({ type: 'text', text: words }) as const;

export const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const;

/** A tool's result. */
export const said = (words: string) => ({ content: [text(words)] });

/** A prompt's message. */
export const user = (content: Content) => ({ role: 'user', content }) as const;

export const formText = (answer: ElicitAnswer): string =>
  answer.action === 'accept'
    ? `action=${answer.action}, content=${JSON.stringify(answer.content)}`
    : `action=${answer.action}`;

/** What the user filled in, or that they did not. */
export const fieldOf = (answer: ElicitAnswer, name: string): string =>
  answer.action === 'accept' ? String(answer.content[name]) : `nobody (${answer.action})`;

export const modelText = ({ content }: SampleAnswer): string =>
  [content]
    .flat()
    .map((block) => (isText(block) ? block.text : JSON.stringify(block)))
    .join('\n');

export const rootsText = ({ roots }: RootsAnswer): string =>
  roots.map(({ uri, name = uri }) => `${name} (${uri})`).join(', ');

const isText = (block: unknown): block is { readonly text: string } =>
  typeof block === 'object' && block !== null && 'text' in block && typeof block.text === 'string';
