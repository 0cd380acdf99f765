import type { Server } from "./index.js";

export function setup(project: { provide(key: "keyspaces", value: Addresses): void }): Promise<() => Promise<void>>;

export type Addresses = Pick<Server, "host" | "port" | "address" | "admin" | "api">;

declare module "vitest" {
  export interface ProvidedContext {
    keyspaces: Addresses;
  }
}
