"""Where Terraform finds the state of a stack."""

from django.urls import path

from apps.stacks.state import terraform_backend

urlpatterns = [
    path("state/<int:stack_id>", terraform_backend.state_of_stack, name="state"),
    path("state/<int:stack_id>/alive", terraform_backend.alive, name="state-alive"),
]
