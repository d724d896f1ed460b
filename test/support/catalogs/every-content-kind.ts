// Every kind of content, and of question to the client, with all that each may say.
import { type Content, elicit, type Icon, listRoots, sample } from '../../../src/index.ts';

export const ICONS: readonly Icon[] = [
  {
    src: 'https://example.com/icon.png',
    mimeType: 'image/png',
    sizes: ['48x48', '96x96'],
    theme: 'light',
  },
  { src: 'data:image/svg+xml;base64,PHN2Zy8+', mimeType: 'image/svg+xml', sizes: ['any'] },
];
export const ANNOTATIONS = {
  audience: ['user', 'assistant'],
  priority: 0.5,
  lastModified: '2026-01-02T03:04:05Z',
} as const;
export const BYTES = Buffer.from([0, 1, 2, 254, 255]).toString('base64');

export const EVERY_KIND: readonly Content[] = [
  { type: 'text', text: 'Grüße, 世界 🌍', annotations: ANNOTATIONS },
  { type: 'image', data: BYTES, mimeType: 'image/png', annotations: { priority: 1 } },
  { type: 'audio', data: BYTES, mimeType: 'audio/wav' },
  {
    type: 'resource',
    resource: { uri: 'memo://text', mimeType: 'text/plain', text: 'Embedded.' },
    annotations: { audience: ['user'] },
  },
  { type: 'resource', resource: { uri: 'memo://bytes', blob: BYTES } },
  {
    type: 'resource_link',
    uri: 'memo://text',
    name: 'memo',
    title: 'Memo',
    description: 'A memo.',
    mimeType: 'text/plain',
    size: 5,
    icons: ICONS,
    annotations: ANNOTATIONS,
  },
];

const FORM = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Name', description: 'Of whom.', minLength: 1, maxLength: 50 },
    mail: { type: 'string', format: 'email' },
    metres: { type: 'number', minimum: 0.5, maximum: 99.5, default: 9.5 },
    count: { type: 'integer', minimum: 1 },
    sure: { type: 'boolean', default: false },
    colour: { type: 'string', enum: ['red', 'green'] },
  },
  required: ['name'],
} as const;

export const QUESTIONS = {
  form: elicit('Who is it?', FORM),
  model: sample({
    messages: [
      { role: 'user', content: { type: 'text', text: 'Say hello.' } },
      { role: 'user', content: { type: 'image', data: BYTES, mimeType: 'image/png' } },
    ],
    maxTokens: 100,
    systemPrompt: 'Be brief.',
    temperature: 0.5,
    stopSequences: ['.'],
    modelPreferences: {
      hints: [{ name: 'small' }],
      costPriority: 1,
      speedPriority: 0.5,
      intelligencePriority: 0,
    },
  }),
  folders: listRoots(),
} as const;
