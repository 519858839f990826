package main

import (
	"github.com/spf13/cobra"

	"tarry/internal/process"
)

func (a *app) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health URL",
		Short: "Ask one address whether it answers",
		Long: `Exits 0 if URL answers 200 within a few seconds, else 1. It is for health checks in images without a shell. Worker and
server know their own address: "worker health" and "server health".`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := process.Healthy(cmd.Context(), args[0]); err != nil {
				return failed("%w", err)
			}
			return nil
		},
	}
}
