// MCP: kinds of content that a revision does not have reach its clients as text.
import { isObject, type JsonObject } from '../../../core/json.ts';
import { type Content, isContent } from '../catalog/content.ts';

/** The revision that brought each kind beside text, image and resource. */
const SINCE: Readonly<Record<string, string>> = {
  audio: '2025-03-26',
  resource_link: '2025-06-18',
};

const NEWEST_CHANGE = '2025-06-18';

/** The result as a client of `version` can read it. Versions compare as text: they are dates. */
export function adaptContent(version: string, result: JsonObject): JsonObject {
  if (version >= NEWEST_CHANGE) return result;
  const { content, messages } = result;
  if (Array.isArray(content)) {
    return { ...result, content: content.map((item: unknown) => adaptItem(version, item)) };
  }
  if (!Array.isArray(messages)) return result;
  return {
    ...result,
    messages: messages.map((message: unknown) =>
      isObject(message) ? { ...message, content: adaptItem(version, message.content) } : message,
    ),
  };
}

/** What is no content of MCP stays as it is: not every catalogue checks what it returns. */
const adaptItem = (version: string, content: unknown): unknown =>
  isContent(content) ? adaptKind(version, content) : content;

function adaptKind(version: string, content: Content): Content {
  if (version >= (SINCE[content.type] ?? '')) return content;
  if (content.type === 'resource_link') return { type: 'text', text: content.uri };
  if (content.type === 'audio') return { type: 'text', text: `[${content.mimeType}]` };
  return content;
}
